"""Delete: a session is erased with everything derived from it, once for a request."""

from __future__ import annotations

import pytest

from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.errors import RequestIdReused, RevisionMismatch, SessionHasDependents
from contextengine_server.session.address import Ref
from contextengine_server.session.receipt import Request
from contextengine_server.store.rows import Deleted
from tests.unit.commands.house import AGENT, S1, TENANT, Server, request, scope

S2 = Ref(AGENT, "s2")


async def delete(
    server: Server,
    ref: Ref = S1,
    revision: int | None = None,
    cascade: bool = False,
    asked: Request | None = None,
) -> Deleted:
    return await server.sessions.delete.run(
        TENANT, ref, expected_revision=revision, cascade=cascade, request=asked
    )


async def test_everything_is_gone(server: Server) -> None:
    await server.talk(1, 6)
    await server.compact(4_000)
    await server.core.queue.add(scope(), ReferenceTokens(100))
    await server.engines.assign.run(scope(), "legacy", {}, clear=False)
    gone = await delete(server)
    assert (gone.sessions, gone.messages, gone.summaries > 0) == (("s1",), 12, True)
    assert set((await server.store.counts()).values()) == {0}
    assert server.core.cache.find(scope()) is None
    assert (await server.core.selection.engine_for(scope())).engine.id == "dag"
    assert [event.name for event in server.events("session:deleted")] == ["session:deleted"]


async def test_what_is_not_there_is_no_error(server: Server) -> None:
    assert await delete(server, revision=5) == Deleted()


async def test_the_same_request_again_erases_nothing_more(server: Server) -> None:
    await server.ingest("a")
    first = await delete(server, asked=request())
    await server.ingest("b")
    assert await delete(server, asked=request()) == first
    assert await server.stored() == ["b"]
    with pytest.raises(RequestIdReused):
        await delete(server, asked=request(digest=b"other"))


async def test_sessions_that_others_stand_on(server: Server) -> None:
    await server.ingest("a")
    await server.context.bootstrap.run(TENANT, S2, Introduction(continues=S1))
    with pytest.raises(SessionHasDependents) as refused:
        await delete(server)
    assert refused.value.metadata == {"sessions": "s2"}
    assert await server.shown(ref=S2) == ["a"]
    gone = await delete(server, cascade=True)
    assert set(gone.sessions) == {"s1", "s2"}
    assert server.core.cache.find(scope(S2)) is None


async def test_a_revision_that_was_not_expected(server: Server) -> None:
    await server.ingest("a")
    with pytest.raises(RevisionMismatch) as refused:
        await delete(server, revision=2)
    assert refused.value.metadata == {"expected": "2", "actual": "1"}
    assert await server.stored() == ["a"]
    assert (await delete(server, revision=1)).messages == 1
