"""Two servers over one store: what one commits the other catches up with, and no race loses or
doubles anything."""

from __future__ import annotations

import copy

import pytest

from contextengine_server.commands.lifecycle.record_host_change import Rewound
from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.commands.turn.reply_cache import ReplyCache
from contextengine_server.errors import LostRace, RequestIdReused, RevisionMismatch
from contextengine_server.session.address import Ref
from contextengine_server.session.receipt import Disposition
from contextengine_server.session.sessions import MAX_TRIES
from tests.unit.commands.house import (
    AGENT,
    S1,
    TENANT,
    Server,
    assistant,
    incoming,
    request,
    result,
    scope,
    spoken,
    turns,
    user,
)

S2 = Ref(AGENT, "s2")


async def same_as_cold(server: Server, cold: Server, tokens: int = 100_000) -> None:
    """What a server has in memory comes to what one that reads it anew makes of the rows."""
    warm, read = await server.assemble(tokens), await cold.assemble(tokens)
    assert (warm.epoch, warm.tokens) == (read.epoch, read.tokens)
    assert warm.joined.context_hash == read.joined.context_hash


# Catching up.


async def test_appends_of_the_other_are_caught_up_with(server: Server, other: Server) -> None:
    await server.ingest("a", "b")
    await other.ingest("c", "d")
    await server.assemble()
    read = server.store.calls["messages"]
    await other.ingest("e", "f")
    assert await server.shown() == ["a", "b", "c", "d", "e", "f"]
    assert server.store.calls["messages"] == read  # and not read again from the first on
    await same_as_cold(server, other)


async def test_what_the_other_appended_is_known_by_its_id(server: Server, other: Server) -> None:
    await server.ingest("a")
    await other.ingest("b")
    done = await server.context.ingest.run(TENANT, S1, spoken("b", "c"), None)
    assert [one.disposition for one in done.stored] == [
        Disposition.DUPLICATE,
        Disposition.STORED,
    ]
    assert await server.stored() == ["a", "b", "c"]
    assert server.store.calls["commit"] == 2  # known beforehand, not by a commit that is refused


async def test_results_of_calls_that_the_other_brings(server: Server, other: Server) -> None:
    await server.context.ingest.run(
        TENANT, S1, incoming(user("a", "1"), assistant("", "2", "c1", "c2")), None
    )
    await other.context.ingest.run(TENANT, S1, incoming(result("c1", "one", "3")), None)
    await server.context.ingest.run(TENANT, S1, incoming(result("c2", "two", "4")), None)
    assert await server.shown() == ["a", "", "one", "two"]
    await same_as_cold(server, other)


async def abandon(server: Server, behind: int = 0) -> None:
    """A call that is given up, and so many messages behind it."""
    await server.context.ingest.run(
        TENANT, S1, incoming(user("a", "1"), assistant("calls", "2", "c1"), user("b", "3")), None
    )
    if behind:
        await server.talk(1, behind)


async def test_a_late_result_that_the_other_took(server: Server, other: Server) -> None:
    await abandon(server)
    await other.context.ingest.run(TENANT, S1, incoming(result("c1", "late", "4")), None)
    assert await server.shown() == ["a", "calls", "late", "b"]
    await same_as_cold(server, other)


async def test_a_late_result_for_what_is_before_the_window(server: Server, other: Server) -> None:
    """It changes rows that this server does not hold, which only reading again shows."""
    await abandon(other, behind=20)
    await server.shown(1_000)
    warm = server.core.cache.find(scope())
    assert warm is not None
    assert warm.view.base > 2
    await other.context.ingest.run(TENANT, S1, incoming(result("c1", "late", "4")), None)
    await same_as_cold(server, other, 1_000)
    assert (await server.shown(100_000))[:4] == ["a", "calls", "late", "b"]


async def test_a_rewind_of_the_other_that_takes_nothing_away(server: Server, other: Server) -> None:
    """No row tells of it: the epoch does."""
    await server.ingest("a", "b")
    before = await server.assemble()
    await other.context.record_host_change.run(TENANT, S1, Rewound(2), request())
    after = await server.assemble()
    assert after.epoch != before.epoch
    await same_as_cold(server, other)


async def test_a_rewind_of_the_other(server: Server, other: Server) -> None:
    await server.ingest("a", "b", "c", "d")
    await other.context.record_host_change.run(TENANT, S1, Rewound(2), request())
    await other.ingest("e")
    assert await server.shown() == ["a", "b", "e"]
    await same_as_cold(server, other)


async def test_a_reset_of_the_other(server: Server, other: Server) -> None:
    await server.ingest("a", "b")
    await other.context.reset_session.run(TENANT, S1, None, None)
    assert await server.shown() == []
    await server.ingest("c")
    assert await other.shown() == ["c"]
    await same_as_cold(server, other)


async def test_a_session_that_the_other_made_go_on_with_another(
    server: Server, other: Server
) -> None:
    """The parent shows nothing and so has no tokens, and still its messages are known here."""
    orphan = incoming(result("c9", "orphan", "orphan"))
    await other.context.ingest.run(TENANT, S2, orphan, None)
    await server.context.bootstrap.run(TENANT, S1, Introduction(model="m"))
    await server.assemble()
    await other.context.bootstrap.run(TENANT, S1, Introduction(continues=S2))
    again = await server.context.ingest.run(
        TENANT, S1, incoming(result("c9", "orphan", "orphan")), None
    )
    assert [one.disposition for one in again.stored] == [Disposition.DUPLICATE]


async def test_a_session_deleted_and_made_again(server: Server, other: Server) -> None:
    await server.ingest("a", "b")
    first = await server.head()
    await other.sessions.delete.run(TENANT, S1, expected_revision=None, cascade=False)
    await other.ingest("c")
    again = await other.head()
    assert again.revision == first.revision
    assert again.incarnation != first.incarnation
    assert await server.shown() == ["c"]
    await server.ingest("b")
    assert await other.stored() == ["c", "b"]
    await same_as_cold(server, other)


async def test_a_session_deleted_and_grown_past_what_was_known(
    server: Server, other: Server
) -> None:
    """A higher revision of another life is no continuation of what is in memory."""
    await server.ingest("a")
    await other.sessions.delete.run(TENANT, S1, expected_revision=None, cascade=False)
    await other.ingest("b")
    await other.ingest("c")
    assert await server.shown() == ["b", "c"]


async def test_a_session_deleted_by_the_other_is_gone(server: Server, other: Server) -> None:
    await server.ingest("a")
    await other.sessions.delete.run(TENANT, S1, expected_revision=None, cascade=False)
    assert await server.shown() == []
    assert server.core.cache.find(scope()) is None


async def test_a_compaction_of_the_other(server: Server, other: Server) -> None:
    await server.talk(1, 4)
    done = await other.compact()
    assert done.done.summaries
    await same_as_cold(server, other)
    await same_as_cold(other, server)


# Races.


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


# Time.


async def test_a_heads_time_never_falls(server: Server) -> None:
    await server.ingest("a")
    written = server.clock.ms
    server.clock.advance(-3600)
    await server.ingest("b")
    assert (await server.head()).updated_ms == written
    assert (await server.head()).created_ms == written
    server.clock.advance(7200)
    await server.ingest("c")
    assert (await server.head()).updated_ms == server.clock.ms
    assert (await server.head()).created_ms == written


# A database that lost what was committed last, as one that failed over to a standby may.


async def lose_the_last(server: Server, texts: tuple[str, ...], then: tuple[str, ...]) -> None:
    """Commits, one a text; the database loses them; and others, one each, through a server that
    never saw them."""
    tables = server.store.rows
    before = copy.deepcopy(tables.sessions)
    for text in texts:
        await server.ingest(text)
    await server.assemble()
    tables.sessions = before
    late = Server(server.rows)
    await late.open()
    for text in then:
        await late.ingest(text)
    await late.close()


@pytest.mark.parametrize("then", [("c", "d"), ("c", "d", "e"), ("c",), ()])
async def test_what_was_lost_is_shown_by_nobody(
    server: Server, other: Server, then: tuple[str, ...]
) -> None:
    """Whatever the revisions are by then: as many, more or fewer."""
    await server.ingest("a", "b")
    await lose_the_last(server, ("x", "y"), then)
    assert await server.shown() == ["a", "b", *then]
    await same_as_cold(server, other)


async def test_what_is_written_next_stands_on_what_is_there(server: Server, other: Server) -> None:
    await server.ingest("a", "b")
    await lose_the_last(server, ("x", "y, which is longer"), ("c", "d"))
    await server.ingest("e")
    assert await server.stored() == ["a", "b", "c", "d", "e"]
    await same_as_cold(server, other)


async def test_an_answer_that_stood_on_what_was_lost_is_not_given_again(server: Server) -> None:
    await server.ingest("a")
    kept = ReplyCache(server.store, server.core.selection, 1 << 20)

    async def ask() -> None:
        made = await server.assemble()
        view = made.view
        stands_on = view.incarnation, view.revision, view.commit_id
        kept.keep((TENANT, b"question"), made, stands_on, b"reply", 0)

    tables = server.store.rows
    before = copy.deepcopy(tables.sessions)
    await server.ingest("x")
    await ask()
    await ask()
    assert await kept.again((TENANT, b"question")) is not None
    tables.sessions = before
    late = Server(server.rows)
    await late.open()
    await late.ingest("c")
    await late.close()
    assert await kept.again((TENANT, b"question")) is None


async def test_what_is_far_behind_is_read_again(server: Server, other: Server) -> None:
    """A head names the few commits before it: who saw none of them reads."""
    await server.ingest("a")
    await server.assemble()
    for text in "bcdefghijklm":
        await other.ingest(text)
    assert await server.shown() == list("abcdefghijklm")
    await same_as_cold(server, other)
