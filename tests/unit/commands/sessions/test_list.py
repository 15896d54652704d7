"""List: which sessions there are, newest write first."""

from __future__ import annotations

from contextengine_server.session.address import Ref
from tests.unit.commands.house import AGENT, TENANT, Server


async def test_pages_newest_write_first(server: Server) -> None:
    for name in "abc":
        await server.ingest("x", ref=Ref(AGENT, name))
        server.clock.advance(1)
    await server.ingest("x", ref=Ref("other", "d"))
    first = await server.sessions.list.run(TENANT, AGENT, "", 2, None)
    assert [one.head.scope.session for one in first.sessions] == ["c", "b"]
    assert first.next_place is not None
    rest = await server.sessions.list.run(TENANT, AGENT, "", 2, first.next_place)
    assert [one.head.scope.session for one in rest.sessions] == ["a"]
    assert rest.next_place is None
    whole = await server.sessions.list.run(TENANT, "", "", 4, None)
    assert (len(whole.sessions), whole.next_place) == (4, None)
    assert (await server.sessions.list.run("another", "", "", 4, None)).sessions == []


async def test_a_key_lists_what_it_named(server: Server) -> None:
    for name in ("old", "new"):
        await server.ingest("x", ref=Ref(AGENT, name, "chat"))
        server.clock.advance(1)
    await server.ingest("x")
    listed = await server.sessions.list.run(TENANT, "", "chat", 9, None)
    assert [(one.head.scope.session, one.current_for_key) for one in listed.sessions] == [
        ("new", True),
        ("old", False),
    ]
