"""Writes of one session that come at once are made one after another, and none loses a race to
another of the same server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from contextengine_server.commands.lifecycle.record_host_change import NativeCompacted
from contextengine_server.commands.turn.after_turn import Turn
from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.commands.turn.update_model import Model
from contextengine_server.session.model import Report
from tests.unit.commands.house import S1, TENANT, Server, request, scope, spoken

Write = Callable[[Server, int], Awaitable[object]]

WRITES: dict[str, Write] = {
    "ingest": lambda server, at: server.context.ingest.run(TENANT, S1, spoken(f"m{at}"), None),
    "assemble": lambda server, at: server.assemble(ingest=spoken(f"m{at}")),
    "live": lambda server, at: server.assemble(
        live=spoken("a", *(f"m{n}" for n in range(at + 1))), store_new=True
    ),
    "after turn": lambda server, at: server.context.after_turn.run(
        TENANT, S1, Turn(spoken(f"m{at}"))
    ),
    "bootstrap": lambda server, at: server.context.bootstrap.run(
        TENANT, S1, Introduction(), spoken("a", *(f"m{n}" for n in range(at + 1)))
    ),
    "usage": lambda server, at: server.context.report_usage.run(
        TENANT, S1, Report(input_tokens=5, billed=True), None
    ),
    "model": lambda server, at: server.context.update_model.run(
        TENANT, S1, Model(window=50_000 + at), None
    ),
    "host change": lambda server, at: server.context.record_host_change.run(
        TENANT, S1, NativeCompacted(), request(f"r{at}")
    ),
    "reset": lambda server, at: server.context.reset_session.run(TENANT, S1, None, None),
}


@pytest.mark.parametrize("name", WRITES)
async def test_writes_at_once_wait_for_each_other(server: Server, name: str) -> None:
    await server.ingest("a")
    before = server.store.calls["commit"]
    server.store.before_commit += [partial(asyncio.sleep, 0.01)] * 4  # a slow disk
    await asyncio.gather(*(WRITES[name](server, at) for at in range(4)))
    assert server.store.calls["commit"] - before == 4
    assert (await server.head()).revision == 5


async def test_who_wants_a_revision_waits_for_it(server: Server, other: Server) -> None:
    """Also for the first."""
    waiting = asyncio.ensure_future(server.core.sessions.reached(scope(), 1))
    await asyncio.sleep(0.02)
    assert not waiting.done()
    await other.ingest("a")
    await asyncio.wait_for(waiting, 30)
    await asyncio.wait_for(server.core.sessions.reached(scope(), 0), 30)
