"""Agents that are written with the SDKs of OpenAI and Anthropic and know of no service: the proxy
stands before the provider."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from typing import Any, ClassVar

from contextengine import text_of
from contextengine.types import SessionRef
from contextengine_proxy.application import Proxy, Settings
from contextengine_proxy.windows import Windows
from tests.hosts.sdk_hosts import Agent, AnthropicAgent, ChatAgent, ResponsesAgent, plain
from tests.hosts.upstream import Upstream, serving

from .brain import Brain
from .host import WINDOW, Host, renamed


class ProxyHost(Host):
    """One dialect of the proxy."""

    name = "proxy"
    kind: ClassVar[type[Agent]]
    window: ClassVar[int] = WINDOW

    def __init__(self, address: str, brain: Brain) -> None:
        super().__init__(address, brain)
        self.kept: list[object] = []
        self.session = "case-1"
        self.life = AsyncExitStack()

    async def start(self) -> None:
        self.life = AsyncExitStack()
        upstream = await self.life.enter_async_context(
            serving(Upstream(self.brain.chat).application)
        )
        settings = Settings(
            address=self.address,
            openai=upstream,
            anthropic=upstream,
            windows=Windows((("*", self.window),)),
        )
        base = await self.life.enter_async_context(serving(Proxy(settings).application))
        self.base = base
        await self.open()

    async def open(self) -> None:
        self.agent = self.kind(self.base, stream=True, session=self.session)
        self.agent.messages = [*self.agent.messages[: 0 if self.kept else None], *self.kept]
        self.life.push_async_callback(self.agent.close)

    async def stop(self) -> None:
        self.kept = list(self.agent.messages)
        await self.life.aclose()

    async def say(self, words: str) -> None:
        await self.agent.say(words)

    async def transcript(self) -> list[str]:
        return [text for text in map(text_of, self.agent.read()) if text]

    @property
    def ref(self) -> SessionRef:
        return SessionRef(agent_id="proxy", session_id=self.session)

    async def undo(self) -> None:
        at = len(self.agent.messages) - 1
        while not _asks(self.agent.messages[at]):
            at -= 1
        del self.agent.messages[at:]

    async def rewrite(self) -> None:
        # Reasoning is what a list loses that is carried to another provider.
        rows = [_without_reasoning(plain(one)) for one in self.agent.messages]
        self.agent.messages = json.loads(renamed(json.dumps([row for row in rows if row])))

    async def fork(self) -> None:
        self.kept = list(self.agent.messages)
        self.session += "-fork"
        await self.open()


def _asks(message: object) -> bool:
    """Whether it is the user's words."""
    if not isinstance(message, dict) or message.get("role") != "user":
        return False
    return isinstance(message["content"], str)


def _without_reasoning(message: Any) -> Any:
    if message.get("type") == "reasoning":
        return None
    if isinstance(message.get("content"), list):
        kept = [one for one in message["content"] if one.get("type") != "thinking"]
        return {**message, "content": kept}
    return message


class ChatProxyHost(ProxyHost):
    """OpenAI Chat Completions."""

    name, kind = "proxy-chat", ChatAgent


class ResponsesProxyHost(ProxyHost):
    """OpenAI Responses."""

    name, kind = "proxy-responses", ResponsesAgent


class AnthropicProxyHost(ProxyHost):
    """Anthropic Messages."""

    name, kind = "proxy-anthropic", AnthropicAgent
    # It says how long an answer may be, so that less of the window is kept free.
    window = 9_500
