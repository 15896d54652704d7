"""ResetSession: the view is emptied, the rows stay."""

from __future__ import annotations

import pytest

from contextengine_server.errors import RevisionMismatch, SessionNotFound
from tests.unit.commands.house import S1, TENANT, Server, request, scope


async def test_the_view_is_empty_and_the_rows_stay(server: Server) -> None:
    await server.ingest("a", "b")
    done = await server.context.reset_session.run(TENANT, S1, None, 1)
    assert (done.revision, done.numbers) == (2, {"retired": 2})
    assert await server.shown() == []
    assert await server.stored() == []
    rows = await server.store.messages(scope(), retired=True)
    assert [row.retired_revision for row in rows] == [2, 2]
    await server.ingest("a")
    assert [row.sequence for row in await server.store.messages(scope())] == [3]
    (told,) = server.events("session:reset")
    assert (told.revision, told.counts) == (2, {"retired": 2})


async def test_summaries_leave_with_it(server: Server) -> None:
    await server.talk(1, 6)
    await server.compact(4_000)
    await server.context.reset_session.run(TENANT, S1, None, None)
    assert await server.store.summaries(scope()) == []
    assert (await server.head()).summary_count == 0


async def test_the_same_request_again_empties_nothing(server: Server) -> None:
    await server.ingest("a")
    first = await server.context.reset_session.run(TENANT, S1, request(), None)
    await server.ingest("b")
    again = await server.context.reset_session.run(TENANT, S1, request(), 1)
    assert (again.revision, again.numbers) == (first.revision, first.numbers)
    assert await server.stored() == ["b"]
    assert len(server.events("session:reset")) == 1


async def test_a_revision_that_was_not_expected(server: Server) -> None:
    await server.ingest("a")
    with pytest.raises(RevisionMismatch):
        await server.context.reset_session.run(TENANT, S1, None, 7)
    assert await server.stored() == ["a"]


async def test_a_session_that_is_not_there(server: Server) -> None:
    with pytest.raises(SessionNotFound):
        await server.context.reset_session.run(TENANT, S1, None, None)
    assert await server.store.head(scope()) is None


async def test_nothing_is_counted_of_what_left_the_view(server: Server) -> None:
    await server.talk(1, 8)
    await server.compact()
    await server.context.reset_session.run(TENANT, S1, None, None)
    head = await server.head()
    assert (head.message_count, head.message_tokens, head.summary_count) == (0, 0, 0)
    assert head.last_sequence == 16
    await server.ingest("a")
    assert (await server.head()).message_count == 1


async def test_a_list_begins_anew_although_it_says_the_same(server: Server) -> None:
    await server.ingest("a")
    before = await server.assemble()
    await server.context.reset_session.run(TENANT, S1, None, None)
    await server.ingest("a")
    assert (await server.assemble()).epoch != before.epoch
