"""Law 9 over the wire: the same request at the same revision gets the same bytes, after a restart
and an eviction too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contextengine import types as t
from tests.integration.harness import Clock, House, budget
from tests.integration.harness import house as living

from .asking import (
    CODING,
    ask,
    ask_bytes,
    calls,
    hashes,
    live,
    quiet,
    result,
    say,
    store,
    talk,
    transcripts,
    window,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

REQUESTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "roomy": {"budget": budget(100_000)},
    "cut": {"budget": budget(4_000)},
    "tight": {"budget": budget(300)},
    "impossible": {"budget": budget(1)},
    "window": {"budget": window(9_000, system_prompt_text="Be kind.", safety_margin=100)},
    "model": {"model": "claude-sonnet-4-5", "provider": "anthropic", "budget": budget(4_000)},
    "prompt": {"prompt": [t.Part(text=t.TextPart(text="and then?"))], "budget": budget(4_000)},
    "explained": {"explain": True, "budget": budget(4_000)},
    "epoch": {"known_epoch": "e1.unknown", "known_context_hash": b"unknown"},
    "live": {"live": live([*talk(30, 60)[40:], say("new")]), "budget": budget(4_000)},
    "unaligned": {"live": live([say("x"), calls("y", "c")]), "budget": budget(4_000)},
}


async def _all(house: House, session: t.SessionRef) -> dict[str, bytes]:
    return {name: await ask_bytes(house, session, **fields) for name, fields in REQUESTS.items()}


@pytest.mark.parametrize("engine", ["dag", "legacy"])
async def test_the_same_bytes(shared: House, session: t.SessionRef, engine: str) -> None:
    await shared.engine_stub.Assign(t.AssignRequest(scope=session, engine_id=engine))
    late = [
        calls("a", "c1", "c2"),
        result("r", "c1"),
        say("u"),
        result("l", "c2"),
        result("o", "nobody"),
    ]
    await store(shared, session, [say("pinned by law"), *late, *talk(30, 60)])
    await shared.client.compact(session, force=True, budget=budget(6_000))
    await quiet(shared, session)
    first = await _all(shared, session)
    again = await _all(shared, session)
    shared.forget()
    evicted = await _all(shared, session)
    disposed = {}
    for name, fields in REQUESTS.items():
        await shared.client.dispose_session(session)
        disposed[name] = await ask_bytes(shared, session, **fields)
    await shared.restart()
    restarted = await _all(shared, session)
    for name, reply in first.items():
        assert again[name] == reply, name
        assert evicted[name] == reply, name
        assert disposed[name] == reply, name
        assert restarted[name] == reply, name
    assert len(set(first.values())) == len(REQUESTS)


async def test_what_was_in_memory_does_not_show(shared: House, session: t.SessionRef) -> None:
    """A window that was loaded for a small budget, for a large one, or for all: the same list for
    each budget."""
    await store(shared, session, transcripts(CODING)["d703a1a9-1b7b-4fb1-b512-c9738b1fe617"])
    await quiet(shared, session)
    sizes = (500, 5_000, 30_000, 90_000, 200_000)
    rising = [await ask_bytes(shared, session, budget=budget(size)) for size in sizes]
    cold = []
    for size in sizes:
        shared.forget()
        cold.append(await ask_bytes(shared, session, budget=budget(size)))
    await ask(shared, session, explain=True)
    falling = [await ask_bytes(shared, session, budget=budget(size)) for size in reversed(sizes)]
    assert rising == cold == falling[::-1]


async def test_no_clock_in_a_reply(session: t.SessionRef, tmp_path: Path, clock: Clock) -> None:
    """Neither the time of the call nor that of a restart."""
    async with living(tmp_path, clock=clock) as house:
        await store(house, session, talk(20, 60))
        await house.client.compact(session, force=True, budget=budget(1_500))
        await quiet(house, session)
        first = await _all(house, session)
        clock.advance(86_400)
        assert await _all(house, session) == first
        await house.restart()
        clock.advance(86_400)
        assert await _all(house, session) == first


async def test_two_services_agree(shared: House, session: t.SessionRef, tmp_path: Path) -> None:
    """Hashes and lists of the same messages are the same on another machine; ids and revisions are
    the session's own."""
    await store(shared, session, talk(30, 60))
    async with living(tmp_path) as other:
        await store(other, session, talk(30, 60))
        for fields in ({}, {"budget": budget(1_500)}):
            here, there = await ask(shared, session, **fields), await ask(other, session, **fields)
            assert hashes(here) == hashes(there)
            assert here.context_hash == there.context_hash
