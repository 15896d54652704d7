"""List: which engines there are."""

from __future__ import annotations

from contextengine_server.context.scope import Scope
from contextengine_server.session.address import Ref
from tests.unit.commands.house import AGENT, TENANT, Server, scope


async def test_the_default_comes_first_with_what_it_serves(server: Server) -> None:
    await server.ingest("a")
    for name in ("s2", "s3"):
        await server.ingest("a", ref=Ref(AGENT, name))
    await server.engines.assign.run(scope(), "legacy", {}, clear=False)
    server.core.selection.failed(scope(), "legacy", "assemble", KeyError())
    listed = (await server.engines.list.run(TENANT)).engines
    assert listed[0].registration.id == "dag"
    by_id = {one.registration.id: one for one in listed}
    assert (by_id["dag"].sessions, by_id["legacy"].sessions) == (2, 1)
    assert by_id["legacy"].failure is not None
    assert by_id["dag"].failure is None
    assert all(one.engine is not None and not one.unavailable for one in listed)
    mine = await server.engines.get.run(scope(), "legacy")
    theirs = await server.engines.get.run(Scope("another", AGENT, ""), "legacy")
    assert (mine.status.failure is not None, theirs.status.failure) == (True, None)
    assert (mine.status.sessions, theirs.status.sessions) == (1, 0)
    elsewhere = (await server.engines.list.run("another")).engines
    assert {one.sessions for one in elsewhere} == {0}
