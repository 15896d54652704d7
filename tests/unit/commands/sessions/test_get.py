"""Get: one session, as it is listed."""

from __future__ import annotations

import pytest

from contextengine_server.errors import SessionNotFound
from contextengine_server.session.address import Ref
from tests.unit.commands.house import AGENT, S1, TENANT, Server


async def test_one_session(server: Server) -> None:
    await server.ingest("x")
    one = await server.sessions.get.run(TENANT, S1)
    assert (one.head.revision, one.current_for_key) == (1, False)
    with pytest.raises(SessionNotFound):
        await server.sessions.get.run(TENANT, Ref(AGENT, "none"))


async def test_whether_its_key_names_it_now(server: Server) -> None:
    old, new = Ref(AGENT, "old", "chat"), Ref(AGENT, "new", "chat")
    await server.ingest("x", ref=old)
    assert (await server.sessions.get.run(TENANT, Ref(AGENT, "old"))).current_for_key
    await server.ingest("x", ref=new)
    assert not (await server.sessions.get.run(TENANT, Ref(AGENT, "old"))).current_for_key
    named = await server.sessions.get.run(TENANT, Ref(AGENT, "", "chat"))
    assert (named.head.scope.session, named.current_for_key) == ("new", True)
