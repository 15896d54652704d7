"""EndSession: a conversation is over until the next write."""

from __future__ import annotations

import pytest

from contextengine_server.errors import RevisionMismatch, SessionNotFound
from tests.unit.commands.house import S1, TENANT, Server, request, scope


async def test_a_session_ends_until_the_next_write(server: Server) -> None:
    await server.ingest("a")
    done = await server.context.end_session.run(TENANT, S1, request(), 1)
    assert done.revision == 2
    assert (await server.head()).ended
    await server.ingest("b")
    assert not (await server.head()).ended
    assert await server.stored() == ["a", "b"]


async def test_what_is_over_is_not_ended_again(server: Server) -> None:
    await server.ingest("a")
    for _ in range(2):
        done = await server.context.end_session.run(TENANT, S1, None, None)
    assert done.revision == 2
    assert len(server.events("session:ended")) == 1


async def test_the_same_request_again_ends_nothing(server: Server) -> None:
    await server.ingest("a")
    await server.context.end_session.run(TENANT, S1, request(), None)
    await server.ingest("b")
    done = await server.context.end_session.run(TENANT, S1, request(), None)
    assert (done.revision, done.repeated) == (2, True)
    assert not (await server.head()).ended


async def test_what_is_refused_changes_nothing(server: Server) -> None:
    with pytest.raises(SessionNotFound):
        await server.context.end_session.run(TENANT, S1, None, None)
    assert await server.store.head(scope()) is None
    await server.ingest("a")
    with pytest.raises(RevisionMismatch):
        await server.context.end_session.run(TENANT, S1, None, 9)
    assert not (await server.head()).ended
