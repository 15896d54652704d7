"""List and Get: which engines there are, and with which options they serve."""

from __future__ import annotations

import pytest

from contextengine_server.context.scope import Scope
from contextengine_server.errors import UnknownEngine
from contextengine_server.session.address import Ref
from tests.unit.commands.house import AGENT, TENANT, Server, scope


async def test_the_default_comes_first_with_what_it_serves(server: Server) -> None:
    await server.ingest("a")
    await server.ingest("a", ref=Ref(AGENT, "s2"))
    await server.engines.assign.run(scope(), "legacy", {}, clear=False)
    server.core.selection.failed(scope(), "legacy", "assemble", KeyError())
    listed = (await server.engines.list.run(TENANT)).engines
    assert listed[0].registration.id == "dag"
    by_id = {one.registration.id: one for one in listed}
    assert (by_id["dag"].sessions, by_id["legacy"].sessions) == (1, 1)
    assert by_id["legacy"].failure is not None
    assert by_id["dag"].failure is None
    assert all(one.engine is not None and not one.unavailable for one in listed)
    mine = await server.engines.get.run(scope(), "legacy")
    theirs = await server.engines.get.run(Scope("another", AGENT, ""), "legacy")
    assert (mine.status.failure is not None, theirs.status.failure) == (True, None)
    assert (mine.status.sessions, theirs.status.sessions) == (1, 0)
    elsewhere = (await server.engines.list.run("another")).engines
    assert {one.sessions for one in elsewhere} == {0}


async def test_the_engine_that_serves_with_its_options(server: Server) -> None:
    options = {"freshTailTurns": 3, "summarizer": {"model": "cheap:model"}}
    await server.engines.assign.run(scope(), "dag", options, clear=False)
    found = await server.engines.get.run(scope(), "")
    assert found.values.model_dump()["fresh_tail_turns"] == 3
    assert (found.source, found.options_source, found.policy_source) == ("session",) * 3
    assert found.policy.model == "cheap:model"
    other = await server.engines.get.run(Scope(TENANT, AGENT, ""), "legacy")
    assert (other.status.registration.id, other.source) == ("legacy", "request")
    with pytest.raises(UnknownEngine):
        await server.engines.get.run(scope(), "none")
