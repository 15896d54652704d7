"""An agent of Pydantic AI, which talks to a mock of OpenAI's chat on loopback and whose
conversation is what its runs answer."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from typing import Any

import openai
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from contextengine.types import SessionRef
from contextengine_pydantic_ai import Contextengine
from tests.hosts.upstream import Upstream, serving

from .brain import NOTHING, Brain, found
from .host import SYSTEM, WINDOW, Host, renamed


def look_up(of: str) -> str:
    """Looks something up."""
    if of == NOTHING:
        raise ModelRetry("there is nothing")
    return found(of)


class PydanticAIHost(Host):
    """The capability in an agent."""

    name = "pydantic-ai"
    forgets_failed = True

    def __init__(self, address: str, brain: Brain) -> None:
        super().__init__(address, brain)
        self.kept = b"[]"
        self.conversation = "case-1"
        self.life = AsyncExitStack()

    async def start(self) -> None:
        self.life = AsyncExitStack()
        base = await self.life.enter_async_context(serving(Upstream(self.brain.chat).application))
        model = openai.AsyncOpenAI(base_url=f"{base}/v1", api_key="key", max_retries=0)
        self.life.push_async_callback(model.close)
        service = await self.life.enter_async_context(self.client())
        self.agent: Any = Agent(
            OpenAIChatModel("mock-1", provider=OpenAIProvider(openai_client=model)),
            instructions=SYSTEM,
            tools=[look_up],
            capabilities=[Contextengine(service, window=WINDOW)],
        )

    async def stop(self) -> None:
        await self.life.aclose()

    async def say(self, words: str) -> None:
        result = await self.agent.run(
            words, message_history=self.history, conversation_id=self.conversation
        )
        # As callers keep a history: in JSON.
        self.kept = result.all_messages_json()

    @property
    def history(self) -> list[ModelMessage]:
        found: list[ModelMessage] = ModelMessagesTypeAdapter.validate_json(self.kept)
        return found

    async def transcript(self) -> list[str]:
        parts: list[Any] = [part for message in self.history for part in message.parts]
        return [str(part.content) for part in parts if getattr(part, "content", None)]

    @property
    def ref(self) -> SessionRef:
        return SessionRef(agent_id="pydantic-ai", session_id=self.conversation)

    async def undo(self) -> None:
        history = self.history
        kinds = [[part.part_kind for part in message.parts] for message in history]
        last = max(at for at, one in enumerate(kinds) if "user-prompt" in one)
        self.kept = ModelMessagesTypeAdapter.dump_json(history[:last])

    async def rewrite(self) -> None:
        messages = json.loads(renamed(self.kept.decode()))
        for message in messages:
            for detail in ("provider_details", "provider_response_id", "usage", "metadata"):
                message.pop(detail, None)
        self.kept = json.dumps(messages).encode()

    async def fork(self) -> None:
        self.conversation += "-fork"
