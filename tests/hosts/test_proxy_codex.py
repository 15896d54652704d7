"""Codex at the proxy: what it sets in the list of a request besides what is said, and what it has
the provider do with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contextengine import Message
from contextengine import name_by_content as name
from tests.hosts.providers import Answer, Json
from tests.hosts.sdk_hosts import ResponsesAgent
from tests.hosts.stage import soon, staged
from tests.hosts.test_proxy import listed, question

pytestmark = pytest.mark.timeout(260)

NAMED: Json = {"type": "additional_tools", "role": "developer", "tools": []}
EFFORT: Json = {"type": "configuration_update", "reasoning": {"effort": "low"}}


class ConfiguringAgent(ResponsesAgent):
    """Names its tools in the list, and sets how hard the model thinks behind each question, as
    Codex does with GPT-6."""

    def open(self, base: str) -> None:
        super().open(base)
        self.messages += [dict(NAMED), {"role": "developer", "content": "Be brief."}]

    async def step(self) -> tuple[str, list[tuple[str, Any]]]:
        if isinstance(self.messages[-1], dict) and self.messages[-1].get("role") == "user":
            self.messages.append(dict(EFFORT))
        return await super().step()

    def read(self) -> list[Message]:
        return super().read()[2:]  # what leads is never part of a session


async def test_what_a_host_sets_among_its_messages_is_not_the_models(tmp_path: Path) -> None:
    """Else it is joined with the reply behind it, and the session is written anew at each turn."""

    def answer(number: int, given: Json) -> Answer:
        asked = given["input"][-1].get("type") == EFFORT["type"]
        return Answer(calls=[{"of": "it"}]) if asked else Answer(f"Answer: {'well ' * 300}")

    async with staged(tmp_path, answer) as stage:
        agents = [ConfiguringAgent(stage.base, stream=True) for _ in range(2)]
        for turn in range(10):
            for at, agent in enumerate(agents):
                await agent.say(f"{at}: {question(turn)}")

        await stage.each_stored([agent.read() for agent in agents])
        for agent in agents:
            await agent.close()
        last = listed(stage.upstream.seen[-1].json)
        assert len(last) < len(agents[-1].messages) - 4
        assert last[:2] == agents[-1].messages[:2]
        assert EFFORT in last


async def test_an_order_to_compact_goes_through_and_is_no_part_of_the_session(
    tmp_path: Path,
) -> None:
    """Codex orders it behind its list, and goes on with what it is answered in place of that."""
    order = {"type": "compaction_trigger"}

    def answer(number: int, given: Json) -> Answer:
        if given["input"][-1] == order:
            return Answer(sealed="c2VjcmV0")
        return Answer(f"Answer: {'well ' * 300}")

    async with staged(tmp_path, answer) as stage:
        agent = ConfiguringAgent(stage.base, stream=True)
        for turn in range(12):
            await agent.say(question(turn))
        before = name(agent.read())
        (session,) = await stage.sessions()
        agent.messages.append(order)
        await agent.step()
        sent = listed(stage.upstream.seen[-1].json)
        assert sent[-1] == order
        assert len(sent) < len(agent.messages) - 4
        await stage.settled(session, before)
        agent.messages = [*agent.messages[:2], agent.messages[-1]]
        for turn in range(2):
            await agent.say(f"{question(turn)} And then?")
        after = name(agent.read())

        async def both() -> bool:
            ids = [await stage.stored(one) for one in await stage.sessions()]
            return sorted(ids) == sorted((before, after))

        await soon(both)
        await agent.close()
