"""Watch: what happens from now on, or behind a position."""

from __future__ import annotations

import asyncio

from contextengine_server.telemetry.events import GAP, Watched
from tests.unit.commands.house import TENANT, Server


async def test_events_from_now_on_and_behind_a_position(server: Server) -> None:
    await server.ingest("a")
    events = server.sessions.watch.run(Watched(TENANT), "")
    await server.ingest("b")
    async with asyncio.timeout(30):
        seen = await anext(events)
        assert (seen.name, seen.revision) == ("session:ingested", 2)
        await server.ingest("c")
        again = server.sessions.watch.run(Watched(TENANT), server.sessions.watch.position(seen))
        assert (await anext(again)).revision == 3


async def test_a_position_of_another_life_is_a_gap(server: Server) -> None:
    await server.ingest("a")
    async with asyncio.timeout(30):
        events = server.sessions.watch.run(Watched(TENANT), "another.1")
        assert [(await anext(events)).name for _ in range(2)] == [GAP, "session:created"]


async def test_other_tenants_are_not_heard(server: Server) -> None:
    events = server.sessions.watch.run(Watched("another"), "")
    await server.ingest("a")
    server.core.events.close()
    assert [event async for event in events] == []
