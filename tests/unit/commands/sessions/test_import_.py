"""Import: a whole session is stored, all or none."""

from __future__ import annotations

import pytest

from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.errors import InvalidField, SessionExists
from contextengine_server.session.address import Ref
from tests.unit.commands.house import AGENT, S1, TENANT, Server, spoken

SAID = Introduction(model="gpt-5")


async def test_a_session_is_stored_once(server: Server) -> None:
    done = await server.sessions.import_.run(TENANT, S1, SAID, spoken("a", "b"))
    assert (done.stored, done.duplicates, done.head.model) == (2, 0, "gpt-5")
    again = await server.sessions.import_.run(TENANT, S1, SAID, spoken("a", "b"))
    assert (again.stored, again.duplicates, again.head.revision) == (0, 2, 1)
    assert await server.stored() == ["a", "b"]


async def test_what_was_appended_is_stored_behind_what_was_there(server: Server) -> None:
    await server.sessions.import_.run(TENANT, S1, SAID, spoken("a", "b"))
    more = await server.sessions.import_.run(TENANT, S1, SAID, spoken("a", "b", "c", "d"))
    assert (more.stored, more.duplicates, more.head.revision) == (2, 2, 2)
    assert await server.stored() == ["a", "b", "c", "d"]
    with pytest.raises(SessionExists):
        await server.sessions.import_.run(TENANT, S1, SAID, spoken("a", "b", "c"))
    with pytest.raises(SessionExists):
        await server.sessions.import_.run(TENANT, S1, SAID, spoken("a", "x", "c", "d", "e"))


async def test_other_messages_are_not_mixed_in(server: Server) -> None:
    await server.ingest("a")
    with pytest.raises(SessionExists):
        await server.sessions.import_.run(TENANT, S1, SAID, spoken("x", "b"))
    assert await server.stored() == ["a"]
    assert (await server.head()).model == ""


async def test_a_session_that_cannot_be_is_refused_beforehand(server: Server) -> None:
    await server.sessions.import_.begin(TENANT, S1, SAID)
    with pytest.raises(InvalidField):
        await server.sessions.import_.begin(TENANT, Ref(AGENT), SAID)
