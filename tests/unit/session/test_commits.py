"""What every commit says of its session, and what the caller hears where it cannot be written."""

from __future__ import annotations

from functools import partial

import pytest

from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.errors import LostRace, StoreDown
from contextengine_server.session.address import Address, Ref
from contextengine_server.session.sessions import MAX_TRIES
from contextengine_server.store.errors import StoreUnavailable, StoreUncertain
from contextengine_server.store.rows import Commit
from tests.unit.commands.house import AGENT, S1, TENANT, Server, request, scope, spoken


async def test_a_clock_that_is_set_back_sets_no_session_back(server: Server) -> None:
    """Idle sessions and lists of sessions go by this time: it only rises."""
    began = server.clock.ms
    await server.ingest("a")
    server.clock.ms += 1_000
    await server.ingest("b")
    server.clock.ms -= 60_000
    await server.ingest("c")
    await server.context.bootstrap.run(TENANT, S1, Introduction(model="m"))
    head = await server.head()
    assert (head.created_ms, head.updated_ms, head.revision) == (began, began + 1_000, 4)
    server.clock.ms += 120_000
    await server.ingest("d")
    assert (await server.head()).updated_ms == server.clock.ms


async def test_a_head_after_a_change_is_one_revision_on(server: Server) -> None:
    next_head = server.core.sessions.next_head
    tied, named = Address(scope(), "chat", bind=True), Address(scope(), "other")
    async with server.core.sessions.open(scope()) as session:
        first = next_head(session, tied, last_sequence=7)
        assert (first.revision, first.session_key, first.last_sequence) == (1, "chat", 7)
        assert (first.scope, first.message_count) == (scope(), 0)
        assert first.created_ms == first.updated_ms == server.clock.ms
        assert next_head(session).incarnation != first.incarnation
    await server.ingest("a", ref=Ref(AGENT, "s1", "chat"))
    await server.context.end_session.run(TENANT, S1, None, None)
    async with server.core.sessions.open(scope()) as session:
        assert session.require().ended
        for address in (None, named):
            later = next_head(session, address)
            assert (later.revision, later.session_key, later.ended) == (3, "chat", False)
        assert next_head(session, Address(scope(), "new", bind=True)).session_key == "new"


async def test_a_store_that_cannot_write_is_told_and_nothing_changes(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.ingest("a")
    before = await server.assemble()

    async def fails(commit: object) -> None:
        raise StoreUnavailable("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(server.store, "commit", fails)
        for call in (
            server.ingest("b"),
            server.context.reset_session.run(TENANT, S1, None, None),
            server.context.bootstrap.run(TENANT, S1, Introduction(model="m")),
        ):
            with pytest.raises(StoreDown) as refused:
                await call
            assert str(refused.value) == "the disk is full: nothing was changed"
            assert refused.value.retry_after_ms == 1_000
    after = await server.assemble()
    assert (after.epoch, after.joined.context_hash) == (before.epoch, before.joined.context_hash)
    assert await server.ingest("b") == 2


@pytest.mark.parametrize("written", [True, False])
async def test_a_commit_of_which_nobody_knows_is_found_out_about(
    server: Server, other: Server, written: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database went away in the middle, for longer than the store asks. Whether the change was
    made is read from the head, and the same sent again is made once."""
    await server.ingest("a")
    await server.assemble()
    commit = server.store.commit

    async def torn(change: Commit) -> None:
        if written:
            await commit(change)
        raise StoreUncertain("the database is away")

    with monkeypatch.context() as broken:
        broken.setattr(server.store, "commit", torn)
        with pytest.raises(StoreDown, match="written as a whole or not at all"):
            await server.ingest("b")
    assert await server.shown() == (["a", "b"] if written else ["a"])
    done = await server.context.ingest.run(TENANT, S1, spoken("b", "c"), None)
    assert [one.sequence for one in done.stored] == [2, 3]
    assert await server.stored() == await other.shown() == ["a", "b", "c"]


async def test_a_session_that_others_never_leave_alone_is_given_up(
    server: Server, other: Server
) -> None:
    await server.ingest("a")
    for at in range(MAX_TRIES):
        server.store.before_commit.append(partial(other.ingest, f"o{at}"))
    with pytest.raises(LostRace) as refused:
        await server.ingest("b")
    assert str(refused.value) == (
        f"session s1 was changed by others {MAX_TRIES} times meanwhile: send again"
    )
    assert refused.value.retry_after_ms == 50
    for at in range(MAX_TRIES - 1):
        server.store.before_commit.append(partial(other.ingest, f"p{at}"))
    await server.ingest("b")
    assert (await server.stored())[-1] == "b"


async def test_a_session_made_again_counts_as_new_ones_do(server: Server, other: Server) -> None:
    """Deleted elsewhere while it was warm here."""
    await server.ingest("a")
    await other.sessions.delete.run(TENANT, S1, expected_revision=None, cascade=False)
    await server.ingest("b")
    assert (await server.state()).encoding == server.counter.encoding
    assert (await server.head()).revision == 1
    assert await other.shown() == ["b"]


async def test_what_a_session_goes_on_with_is_stored_once_for_a_request(server: Server) -> None:
    await server.ingest("a")
    said = Introduction(continues=S1)
    for _ in range(2):
        history = spoken("b", ids=False)
        await server.context.bootstrap.run(TENANT, Ref(AGENT, "s2"), said, history, request())
    assert await server.shown(ref=Ref(AGENT, "s2")) == ["a", "b"]
