"""The rows of the table of scenarios (test_table.py) for Hermes itself, which are not in
test_hermes_agent.py: what its user does to a conversation, and what becomes of the service."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from contextengine_hermes.block import part
from tests.hosts.gate import Way
from tests.hosts.gateway import serves
from tests.hosts.hermes_host import HERMES, Hermes, agrees, hermes
from tests.hosts.stage import soon

MUCH = "and what of this " * 60
PROBED_S = 2.0
"""By then a client has seen that the service is there again."""
pytestmark = pytest.mark.skipif(not HERMES, reason="CONTEXTENGINE_HERMES names no Python")


def questions(texts: list[str]) -> list[str]:
    return [text.split(":")[0] for text in texts if text.startswith("question")]


def shown(host: Hermes) -> str:
    """What the newest request says."""
    return json.dumps(host.asked[-1])


async def told(host: Hermes, turns: int) -> dict[str, Any]:
    """Hermes after so many questions."""
    last: dict[str, Any] = {}
    for at in range(turns):
        last = await host.do(say=f"question {at}: {MUCH}well")
    return last


async def test_a_request_that_is_too_long_is_made_again_with_less(tmp_path: Path) -> None:
    async with hermes(tmp_path) as host:
        await told(host, 8)
        before, asked = await host.stored(), len(host.asked)
        host.too_long = 1
        after = await host.do(say="and now")
        refused, answered = host.asked[asked:]
        assert refused[-1]["content"] == answered[-1]["content"] == "and now"
        assert len(json.dumps(answered)) < len(json.dumps(refused))
        assert set(part(str(answered[0]["content"])).items) <= await host.summaries()
        assert after["compactions"] == 1
        stored = await host.stored()
        assert stored[: len(before)] == before
        assert stored[len(before)] == "and now"
        assert len(stored) == len(before) + 2


async def test_a_service_that_is_killed_and_comes_back_loses_no_turn(tmp_path: Path) -> None:
    async with hermes(tmp_path) as host:
        await told(host, 3)
        host.service.kill()
        host.way.turn(Way.CLOSED)
        for words in ("question 3: BRAVO", "question 4: CHARLIE"):
            await host.do(say=words)
            assert questions([str(row["content"]) for row in host.asked[-1]])[0] == "question 0"
        host.service.start()
        await soon(lambda: serves(host.service.address))
        host.way.turn(Way.OPEN)
        await asyncio.sleep(PROBED_S)
        last = await host.do(say="question 5: DELTA")
        await agrees(host, last)
        assert questions(await host.stored()) == [f"question {at}" for at in range(6)]


async def test_a_compaction_that_is_asked_for_changes_what_is_shown_and_nothing_stored(
    tmp_path: Path,
) -> None:
    async with hermes(tmp_path) as host:
        await told(host, 8)
        before = await host.stored()
        last = await host.do(compact=True)
        assert last["compactions"] == 1
        await host.do(say="question 8: and now")
        assert set(part(str(host.asked[-1][0]["content"])).items) & await host.summaries()
        assert "question 0:" not in [str(row["content"])[:11] for row in host.asked[-1]]
        stored = await host.stored()
        assert stored[: len(before)] == before
        assert questions(stored) == [f"question {at}" for at in range(9)]


@pytest.mark.parametrize("compacted", [False, True], ids=["verbatim", "compacted"])
async def test_a_fork_leaves_what_it_came_from(tmp_path: Path, compacted: bool) -> None:
    """As `/branch` does: the same agent goes on in a copy of the conversation."""
    async with hermes(tmp_path) as host:
        await told(host, 8)
        if compacted:
            await host.do(compact=True)
        kept = await host.stored("h1")
        await host.do(fork="h2")
        last = await host.do(say="question 8: in the copy")
        assert last["session"] == "h2"
        assert "in the copy" in shown(host)
        assert await host.stored("h1") == kept
        assert (await host.stored("h2"))[-2] == "question 8: in the copy"
        if not compacted:
            await agrees(host, last, "h2")
        # What is compacted now is the copy.
        last = await host.do(compact=True)
        last = await host.do(say="question 9: and now")
        assert questions(await host.stored("h2"))[-2:] == ["question 8", "question 9"]
        assert await host.stored("h1") == kept
        assert last["session"] == "h2"


async def test_calls_that_are_named_anew_and_details_that_are_dropped_are_no_new_messages(
    tmp_path: Path,
) -> None:
    async with hermes(tmp_path) as host:
        await agrees(host, await told(host, 8))
        assert any(row.get("tool_calls") for row in host.asked[-1]), "there are calls"
        await host.do(rewrite=True)
        assert "call_" in shown(host)
        for words in ("question 8: more", "question 9: more"):
            await agrees(host, await host.do(say=words))
        assert "callx" in shown(host)
        assert questions(await host.stored()) == [f"question {at}" for at in range(10)]
