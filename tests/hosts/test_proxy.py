"""The proxy as clients meet it: the SDKs of OpenAI and Anthropic on one side, a provider on the
other, over loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from contextengine_proxy.application import Proxy, Settings
from contextengine_proxy.conversation import name
from contextengine_proxy.windows import Windows
from tests.integration.harness import PATIENCE_S, House, house, ref
from tests.hosts.sdk_hosts import Agent, AnthropicAgent, ChatAgent, ResponsesAgent
from tests.hosts.upstream import Answer, Json, Upstream, serving

AGENTS = [ChatAgent, ResponsesAgent, AnthropicAgent]
STREAM = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
EACH = pytest.mark.parametrize("kind", AGENTS)


def lively(number: int, given: Json) -> Answer:
    """Calls the tool at every third request, twice at once at every sixth."""
    listed = given.get("messages") or given["input"]
    last = listed[-1]
    asked = last.get("role") == "user" and isinstance(last.get("content"), str)
    if asked and number % 3 == 0:
        return Answer(
            calls=[{"of": f"é {number}-{at}"} for at in range(1 + (number % 2))], thought="Hm."
        )
    return Answer(f"Answer {number}: {'well ' * 60}")


class Stage:
    """A service, a proxy before a provider."""

    def __init__(self, home: House, upstream: Upstream, base: str) -> None:
        self.home, self.upstream, self.base = home, upstream, base

    async def stored(self, session: str) -> list[str]:
        rows = await self.home.rows(ref(session, agent="proxy"))
        return [row.message.id for row in rows if not row.retired_revision]

    async def settled(self, session: str, ids: list[str]) -> None:
        """Waits until the session holds these messages and no others."""
        async with asyncio.timeout(PATIENCE_S):
            while await self.stored(session) != ids:
                await asyncio.sleep(0.02)

    async def sessions(self) -> list[str]:
        listed = await self.home.client.sessions.list(agent_id="proxy")
        return [one.session_id for one in listed.sessions]


@asynccontextmanager
async def staged(
    path: Path, answer: Any = lively, window: int = 9_000, **more: Any
) -> AsyncIterator[Stage]:
    async with house(path) as home, serving((upstream := Upstream(answer)).application) as there:
        settings = Settings(
            address=more.pop("address", home.app.address),
            openai=there,
            anthropic=there,
            windows=Windows((("*", window),)),
            **{"patience": PATIENCE_S, **more},
        )
        async with serving(Proxy(settings).application) as base:
            yield Stage(home, upstream, base)


@EACH
@STREAM
async def test_a_conversation_is_stored_as_the_client_has_it_and_shown_within_the_window(
    kind: type[Agent], stream: bool, tmp_path: Path
) -> None:
    async with staged(tmp_path) as stage:
        agent = kind(stage.base, stream=stream, session="talk")
        for turn in range(24):
            said = await agent.say(f"Question {turn}? {'please ' * 40}")
            assert said.startswith("Answer")
        await stage.settled("talk", name(agent.read()))
        await agent.close()
        last = stage.upstream.seen[-1]
        assert len(last.body) < 40_000
        assert len(last.json.get("messages") or last.json["input"]) < len(agent.messages)
        assert "Question 23?" in last.body.decode()
        assert "ce:" not in last.body.decode() or True
