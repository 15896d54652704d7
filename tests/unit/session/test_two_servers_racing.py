"""Two servers over one store that write at once: no race loses or doubles anything."""

from __future__ import annotations

import pytest

from contextengine_server.errors import LostRace, RequestIdReused, RevisionMismatch
from contextengine_server.session.receipt import Disposition
from contextengine_server.session.sessions import MAX_TRIES
from tests.unit.commands.house import (
    S1,
    TENANT,
    Server,
    request,
    same_as_cold,
    scope,
    spoken,
    turns,
)


async def test_a_lost_race_is_tried_again(server: Server, other: Server) -> None:
    await server.ingest("a")
    server.store.before_commit = [lambda: other.ingest("b"), lambda: other.ingest("c")]
    done = await server.context.ingest.run(TENANT, S1, spoken("d", "e"), None)
    assert [one.sequence for one in done.stored] == [4, 5]
    assert done.revision == 4
    assert await server.stored() == ["a", "b", "c", "d", "e"]
    await same_as_cold(server, other)


async def test_the_first_message_of_both(server: Server, other: Server) -> None:
    server.store.before_commit = [lambda: other.ingest("a")]
    await server.ingest("b")
    assert await server.stored() == ["a", "b"]
    await same_as_cold(server, other)


async def test_what_the_other_stored_meanwhile_is_not_stored_twice(
    server: Server, other: Server
) -> None:
    await server.ingest("a")
    server.store.before_commit = [lambda: other.ingest("b", "c")]
    done = await server.context.ingest.run(TENANT, S1, spoken("b", "c", "d"), None)
    assert [one.disposition for one in done.stored] == [
        Disposition.DUPLICATE,
        Disposition.DUPLICATE,
        Disposition.STORED,
    ]
    assert await server.stored() == ["a", "b", "c", "d"]


async def test_who_always_loses_hears_of_it(server: Server, other: Server) -> None:
    await server.ingest("a")
    server.store.before_commit = [
        lambda at=at: other.ingest(f"o{at}")  # type: ignore[misc]
        for at in range(MAX_TRIES)
    ]
    with pytest.raises(LostRace) as lost:
        await server.ingest("b")
    assert lost.value.retry_after_ms
    assert server.store.calls["commit"] == 1 + MAX_TRIES
    assert await server.stored() == ["a", *(f"o{at}" for at in range(MAX_TRIES))]
    await server.ingest("b")
    assert (await server.stored())[-1] == "b"


async def test_the_last_try_may_win(server: Server, other: Server) -> None:
    await server.ingest("a")
    server.store.before_commit = [
        lambda at=at: other.ingest(f"o{at}")  # type: ignore[misc]
        for at in range(MAX_TRIES - 1)
    ]
    await server.ingest("b")
    assert (await server.stored())[-1] == "b"


async def test_a_change_that_loses_a_race_is_made_over_what_won(
    server: Server, other: Server
) -> None:
    await server.ingest("a")
    server.store.before_commit = [lambda: other.ingest("b")]
    done = await server.context.reset_session.run(TENANT, S1, None, None)
    assert done.numbers == {"retired": 2}
    assert await server.stored() == []
    await same_as_cold(server, other)


async def test_a_change_that_always_loses(server: Server, other: Server) -> None:
    await server.ingest("a")
    server.store.before_commit = [
        lambda at=at: other.ingest(f"o{at}")  # type: ignore[misc]
        for at in range(MAX_TRIES)
    ]
    with pytest.raises(LostRace):
        await server.context.end_session.run(TENANT, S1, None, None)
    assert not (await server.head()).ended


async def test_an_expected_revision_is_asked_again_after_a_lost_race(
    server: Server, other: Server
) -> None:
    await server.ingest("a")
    server.store.before_commit = [lambda: other.ingest("b")]
    with pytest.raises(RevisionMismatch) as refused:
        await server.context.reset_session.run(TENANT, S1, None, 1)
    assert refused.value.metadata == {"expected": "1", "actual": "2"}
    assert await server.stored() == ["a", "b"]


async def test_ids_before_the_window_that_are_taken(server: Server, other: Server) -> None:
    await other.talk(1, 20)
    await server.shown(1_000)
    warm = server.core.cache.find(scope())
    assert warm is not None
    assert warm.view.base
    assert "u1" not in warm.ids
    done = await server.context.ingest.run(TENANT, S1, [*turns(1, 1)[:1], *spoken("new")], None)
    assert [(one.sequence, one.disposition) for one in done.stored] == [
        (1, Disposition.DUPLICATE),
        (41, Disposition.STORED),
    ]


async def test_a_request_that_the_other_answered(server: Server, other: Server) -> None:
    await server.ingest("a")
    messages = spoken("b", ids=False)
    server.store.before_commit = [
        lambda: other.context.ingest.run(TENANT, S1, spoken("b", ids=False), request())
    ]
    done = await server.context.ingest.run(TENANT, S1, messages, request())
    assert (done.revision, [one.sequence for one in done.stored]) == (2, [2])
    assert await server.stored() == ["a", "b"]


async def test_a_request_id_that_the_other_spent_on_something_else(
    server: Server, other: Server
) -> None:
    await server.ingest("a")
    server.store.before_commit = [
        lambda: other.context.ingest.run(
            TENANT, S1, spoken("b", ids=False), request(digest=b"other")
        )
    ]
    with pytest.raises(RequestIdReused):
        await server.context.ingest.run(TENANT, S1, spoken("c", ids=False), request())
    assert await server.stored() == ["a", "b"]


async def test_a_change_that_the_other_made_for_the_same_request(
    server: Server, other: Server
) -> None:
    await server.ingest("a")
    server.store.before_commit = [
        lambda: other.context.reset_session.run(TENANT, S1, request(), None)
    ]
    done = await server.context.reset_session.run(TENANT, S1, request(), None)
    assert (done.repeated, done.revision, done.numbers) == (True, 2, {"retired": 1})
    assert (await server.head()).revision == 2
    assert [event.name for event in server.events("session:reset")] == []


async def test_a_session_deleted_under_a_write(server: Server, other: Server) -> None:
    await server.ingest("a")
    server.store.before_commit = [
        lambda: other.sessions.delete.run(TENANT, S1, expected_revision=None, cascade=False)
    ]
    await server.ingest("b")
    assert await server.stored() == ["b"]
    assert (await server.head()).revision == 1


async def test_what_changes_while_it_is_read_is_read_again(server: Server, other: Server) -> None:
    await other.ingest("a")
    server.store.before_read = [lambda: other.ingest("b"), lambda: other.ingest("c")]
    assert await server.shown() == ["a", "b", "c"]
    await same_as_cold(server, other)


async def test_a_session_that_is_replaced_while_it_is_read(server: Server, other: Server) -> None:
    """By another life at the same revision."""
    await other.ingest("a")

    async def replace() -> None:
        await other.sessions.delete.run(TENANT, S1, expected_revision=None, cascade=False)
        await other.ingest("b")

    server.store.before_read = [replace]
    await server.ingest("c")
    assert await server.shown() == ["b", "c"]
    await same_as_cold(server, other)


async def test_a_session_that_always_changes_while_it_is_read(
    server: Server, other: Server
) -> None:
    await other.ingest("a")
    server.store.before_read = [
        lambda at=at: other.ingest(f"o{at}")  # type: ignore[misc]
        for at in range(MAX_TRIES)
    ]
    with pytest.raises(LostRace):
        await server.shown()
    assert len(await server.shown()) == 1 + MAX_TRIES
