"""Agents that are written with the SDKs of OpenAI and Anthropic, as people write them: they keep
their own list, call a tool where the model wants it, and know of no service."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any

import anthropic
import openai

from contextengine import Message
from contextengine.formats import from_anthropic, from_openai, from_responses

from .providers import TOOL

SYSTEM = "You are a careful assistant."
SCHEMA = {"type": "object", "properties": {"of": {"type": "string"}}, "required": ["of"]}


class Agent(ABC):
    """One conversation."""

    def __init__(self, base: str, *, stream: bool, session: str = "") -> None:
        self.stream = stream
        self.messages: list[Any] = []
        self.headers = {"X-ContextEngine-Session": session} if session else {}
        self.open(base)

    async def say(self, words: str) -> str:
        """A turn: what the model says at last."""
        self.messages.append({"role": "user", "content": words})
        while True:
            text, calls = await self.step()
            if not calls:
                return text
            for call in calls:
                self.answer(call, f"{json.dumps(call[1])} is {'so ' * 120}")
            self.answered()

    def answered(self) -> None:  # noqa: B027
        """All calls of a step have their results."""

    @abstractmethod
    def open(self, base: str) -> None: ...

    @abstractmethod
    async def step(self) -> tuple[str, list[tuple[str, Any]]]:
        """One model call: what it says, its calls by id with their arguments."""

    @abstractmethod
    def answer(self, call: tuple[str, Any], result: str) -> None: ...

    @abstractmethod
    def read(self) -> list[Message]:
        """The agent's list as it would be sent."""

    async def close(self) -> None:
        """Ends its connection."""
        await self.client.close()

    client: Any


class ChatAgent(Agent):
    """OpenAI Chat Completions."""

    def open(self, base: str) -> None:
        self.client = openai.AsyncOpenAI(base_url=f"{base}/v1", api_key="key", max_retries=0)
        self.messages.append({"role": "system", "content": SYSTEM})

    async def step(self) -> tuple[str, list[tuple[str, Any]]]:
        asked: dict[str, Any] = {
            "model": "mock-1",
            "messages": self.messages,
            "tools": [{"type": "function", "function": {"name": TOOL, "parameters": SCHEMA}}],
            "extra_headers": self.headers,
        }
        if self.stream:
            async with self.client.chat.completions.stream(**asked) as events:
                async for _ in events:
                    pass
                reply = await events.get_final_completion()
        else:
            reply = await self.client.chat.completions.create(**asked)
        message = reply.choices[0].message
        self.messages.append(message)
        calls = [
            (call.id, json.loads(call.function.arguments)) for call in message.tool_calls or ()
        ]
        return message.content or "", calls

    def answer(self, call: tuple[str, Any], result: str) -> None:
        self.messages.append({"role": "tool", "tool_call_id": call[0], "content": result})

    def read(self) -> list[Message]:
        return from_openai(map(plain, self.messages[1:]))


class ResponsesAgent(Agent):
    """OpenAI Responses, whose list the client keeps."""

    def open(self, base: str) -> None:
        self.client = openai.AsyncOpenAI(base_url=f"{base}/v1", api_key="key", max_retries=0)

    async def step(self) -> tuple[str, list[tuple[str, Any]]]:
        asked: dict[str, Any] = {
            "model": "mock-1",
            "input": self.messages,
            "instructions": SYSTEM,
            "store": False,
            "tools": [{"type": "function", "name": TOOL, "parameters": SCHEMA, "strict": False}],
            "extra_headers": self.headers,
        }
        if self.stream:
            async with self.client.responses.stream(**asked) as events:
                async for _ in events:
                    pass
                reply = await events.get_final_response()
        else:
            reply = await self.client.responses.create(**asked)
        self.messages += reply.output
        calls = [
            (item.call_id, json.loads(item.arguments))
            for item in reply.output
            if item.type == "function_call"
        ]
        return reply.output_text, calls

    def answer(self, call: tuple[str, Any], result: str) -> None:
        output = {"type": "function_call_output", "call_id": call[0], "output": result}
        self.messages.append(output)

    def read(self) -> list[Message]:
        return from_responses(map(plain, self.messages))


class AnthropicAgent(Agent):
    """Anthropic Messages, with a cache mark on the newest message, as agents set it."""

    def open(self, base: str) -> None:
        self.client = anthropic.AsyncAnthropic(base_url=base, api_key="key", max_retries=0)
        self.results: list[Any] = []

    async def step(self) -> tuple[str, list[tuple[str, Any]]]:
        asked: dict[str, Any] = {
            "model": "mock-1",
            "system": SYSTEM,
            "messages": self.messages,
            "max_tokens": 500,
            "tools": [{"name": TOOL, "input_schema": SCHEMA}],
            "extra_headers": self.headers,
        }
        if self.stream:
            async with self.client.messages.stream(**asked) as events:
                async for _ in events:
                    pass
                reply = await events.get_final_message()
        else:
            reply = await self.client.messages.create(**asked)
        self.messages.append({"role": "assistant", "content": reply.content})
        calls = [(block.id, block.input) for block in reply.content if block.type == "tool_use"]
        return "".join(block.text for block in reply.content if block.type == "text"), calls

    def answer(self, call: tuple[str, Any], result: str) -> None:
        answered = {"type": "tool_result", "tool_use_id": call[0], "content": result}
        self.results.append(answered)

    def answered(self) -> None:
        self.messages.append({"role": "user", "content": self.results})
        self.results = []

    def read(self) -> list[Message]:
        return from_anthropic(map(plain, self.messages))


def plain(message: Any) -> Any:
    """As the SDK writes it into a request."""
    if isinstance(message, list):
        return [plain(one) for one in message]
    if isinstance(message, dict):
        return {name: plain(value) for name, value in message.items()}
    if hasattr(message, "model_dump"):
        return message.model_dump(exclude_unset=True, mode="json")
    return message
