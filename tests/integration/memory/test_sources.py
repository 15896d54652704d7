"""Where facts come from and go to besides a session's end: imports, idleness, what is owed, the
doctor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from contextengine import types as t
from contextengine import user
from contextengine_server.context.scope import Scope
from contextengine_server.store.agent_facts import AgentFact, FoundInSession
from tests.integration.harness import PATIENCE_S, House, house, ref

from .test_remembering import FIRST, NEXT, known, say, told

SCOPE = Scope("default", "agent", "first")


async def until_known(house: House, session: t.SessionRef, query: str) -> list[str]:
    """What memory has once it has anything of a query."""
    async with asyncio.timeout(PATIENCE_S):
        while not (found := await known(house.client, session, query)):
            await asyncio.sleep(0.02)
    return found


async def test_what_is_imported_is_remembered(house: House) -> None:
    await house.client.sessions.import_session(FIRST, [user("I prefer dark mode."), user("Hello")])
    assert await until_known(house, FIRST, "mode") == ["preference: I prefer dark mode"]
    head = await house.app.store.head(SCOPE)
    assert head is not None
    assert head.revision == 1, "a session changes by nothing that its host did not do"


async def test_a_session_that_is_idle_ends_with_its_facts(tmp_path: Path) -> None:
    async with house(tmp_path, **{"sessions.idle_end": "1s"}) as lived:
        await say(lived.client, FIRST, "I prefer dark mode.")
        assert await until_known(lived, FIRST, "mode") == ["preference: I prefer dark mode"]


async def test_a_later_end_finds_what_was_said_since(house: House) -> None:
    await told(house.client, FIRST, "I prefer dark mode.")
    await told(house.client, FIRST, "I prefer light mode.")
    await house.client.end_session(FIRST)
    assert await known(house.client, FIRST, "mode") == ["preference: I prefer light mode"]
    facts = await house.app.store.memory.facts("default", "agent")
    assert [(fact.sequence, fact.value) for fact in facts] == [
        (1, "I prefer dark mode"),
        (2, "I prefer light mode"),
    ]


async def test_the_doctor_names_and_mends_a_fact_without_its_message(house: House) -> None:
    await told(house.client, FIRST, "I prefer dark mode.")
    await say(house.client, NEXT, "Hello")
    head = await house.app.store.head(SCOPE)
    assert head is not None
    stray = AgentFact(SCOPE, "fact_stray", "name", "user", "Mallory", "Mallory", 99, 1, 1)
    add = house.app.store.memory.add
    assert await add(FoundInSession(SCOPE, head.incarnation, head.revision, [stray])) == 1
    seen = await house.client.engines.doctor(session=FIRST)
    assert "lost_source" in str(seen)
    await house.client.engines.doctor(session=FIRST, repair=True)
    assert await known(house.client, NEXT, "Mallory mode") == ["preference: I prefer dark mode"]
    assert "lost_source" not in str(await house.client.engines.doctor(session=FIRST))


async def test_facts_are_counted_and_told(house: House) -> None:
    stream = house.client.sessions.watch(session_id="first", agent_id="agent")
    seen = asyncio.create_task(_first_of(stream, "memory:found"))
    await house.working(1)
    await told(house.client, FIRST, "I prefer dark mode.", "Call me Sam.", "I prefer tea.")
    meters = house.app.core.meters.facts
    assert {kind: meter.value for kind, meter in meters.items() if meter.value} == {
        "preference": 2,
        "name": 1,
    }
    async with asyncio.timeout(PATIENCE_S):
        event = await seen
    assert dict(event.counts) == {"preference": 2, "name": 1}


async def _first_of(stream: AsyncIterator[t.WatchResponse], name: str) -> t.WatchResponse:
    async for event in stream:
        if event.name == name:
            return event
    raise AssertionError(name)


async def test_an_agent_remembers_so_many(tmp_path: Path) -> None:
    async with house(tmp_path, **{"memory.max_facts": 3}) as lived:
        client = lived.client
        await told(client, FIRST, "I prefer dark mode.", "I prefer light mode.", "Call me Sam.")
        await told(client, NEXT, "I like tea.", "I like figs.")
        found = await known(client, ref("first"), ".", mode=t.SEARCH_MODE_REGEX)
        assert len(found) == 3
        assert "preference: I prefer dark mode" not in found
        assert {"preference: I like tea", "preference: I like figs"} <= set(found)


async def test_what_a_deleted_session_said_is_gone_from_the_file(house: House) -> None:
    await told(house.client, FIRST, "I prefer the zygomorphic theme.")
    assert await known(house.client, FIRST, "zygomorphic")
    await house.client.sessions.delete(FIRST)
    await house.stop()
    left = [
        path.name
        for path in house.database.parent.iterdir()
        if path.is_file() and b"zygomorphic" in path.read_bytes()
    ]
    await house.start()
    assert left == []
