"""Agents that are written with the SDKs of OpenAI, Anthropic and Google, as people write them: they
keep their own list, call a tool where the model wants it, and know of no service."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from itertools import groupby
from typing import Any

import anthropic
import openai
from google import genai
from google.genai import types as google

from contextengine import Message
from contextengine.formats import from_anthropic, from_gemini, from_openai, from_responses

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
        self.messages.append(self.asked(words))
        while True:
            text, calls = await self.step()
            if not calls:
                return text
            for call in calls:
                self.answer(call, f"{json.dumps(call[1])} is {'so ' * 120}")
            self.answered()

    def asked(self, words: str) -> Any:
        """What the user says, as an element of the list."""
        return {"role": "user", "content": words}

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


class GeminiAgent(Agent):
    """Gemini. A reply that came in pieces stands in its list so, as the SDK's chats keep it."""

    def open(self, base: str) -> None:
        options = google.HttpOptions(base_url=base, headers=self.headers)
        self.client = genai.Client(api_key="key", http_options=options).aio
        self.results: list[google.Part] = []

    def asked(self, words: str) -> Any:
        return google.Content(role="user", parts=[google.Part(text=words)])

    async def step(self) -> tuple[str, list[tuple[str, Any]]]:
        declared = google.FunctionDeclaration(name=TOOL, parameters_json_schema=SCHEMA)
        asked: dict[str, Any] = {
            "model": "mock-1",
            "contents": list(self.messages),
            "config": google.GenerateContentConfig(
                system_instruction=SYSTEM,
                max_output_tokens=500,
                tools=[google.Tool(function_declarations=[declared])],
            ),
        }
        models = self.client.models
        if self.stream:
            events = [one async for one in await models.generate_content_stream(**asked)]
        else:
            events = [await models.generate_content(**asked)]
        pieces = [event.candidates[0].content for event in events]
        parts = [part for piece in pieces for part in piece.parts]
        said = "".join(part.text for part in parts if part.text and not part.thought)
        calls = [part for part in parts if part.function_call is not None]
        self.messages += pieces
        return said, [(part.function_call.name, part.function_call.args) for part in calls]

    def answer(self, call: tuple[str, Any], result: str) -> None:
        answered = google.FunctionResponse(name=call[0], response={"output": result})
        self.results.append(google.Part(function_response=answered))

    def answered(self) -> None:
        self.messages.append(google.Content(role="user", parts=self.results))
        self.results = []

    def read(self) -> list[Message]:
        whole: list[google.Content] = []
        for of_model, several in groupby(self.messages, lambda one: one.role == "model"):
            contents = list(several)
            if of_model:
                parts = [part for one in contents for part in one.parts]
                said = "".join(part.text for part in parts if part.text and not part.thought)
                spoken = [google.Part(text=said)] if said else []
                spoken += [part for part in parts if part.function_call is not None]
                contents = [google.Content(role="model", parts=spoken)]
            whole += contents
        return from_gemini(one.model_dump(exclude_none=True, mode="json") for one in whole)

    async def close(self) -> None:
        await self.client.aclose()


def plain(message: Any) -> Any:
    """As the SDK writes it into a request."""
    if isinstance(message, list):
        return [plain(one) for one in message]
    if isinstance(message, dict):
        return {name: plain(value) for name, value in message.items()}
    if hasattr(message, "model_dump"):
        return message.model_dump(exclude_unset=True, mode="json")
    return message
