"""The archive: rows leave the store whole and come back as they were, and a write that comes
between wins."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.archives import ArchivedObject, ArchiveTotals
from contextengine_server.store.errors import RevisionConflict, StoreError
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Commit, StoredReply

from .case import StoreCase
from .rows import SCOPE, Pen, debt, message, summary

NEVER = 2**62


def an_object(pen: Pen, name: str = "one", **more: Any) -> ArchivedObject:
    """What holds the session that a pen writes."""
    fields = {"digest": b"d" * 32, "size": 100, "messages": 3, "summaries": 2, "pinned": False}
    return ArchivedObject(
        pen.scope, name, pen.head.incarnation, **{**fields, "created_ms": 1_000, **more}
    )


async def long_life(store: Store) -> Pen:
    """A session with rows of every kind, retired ones too."""
    pen = Pen(store, session_key="key", updated_ms=50)
    await pen.write(
        messages=[message(n, host_id=f"h{n}", time_ms=n, pinned=n == 2) for n in (1, 2)],
        summaries=[summary("a", 1, 1), summary("b", 2, 2, children=("a",), asked_before=True)],
        reply=StoredReply("r1", b"digest", b"reply"),
        bind_key=True,
    )
    await pen.write(messages=[message(3, 2, start=None, step=None, late_of=1)], retire_after=1)
    await pen.write(retire_summaries=["b"])
    return pen


async def archived(store: Store, pen: Pen, name: str = "one", **more: Any) -> ArchivedObject:
    row = an_object(pen, name, **more)
    await store.archives.reserve(row)
    pen.head = await store.archives.move(pen.head, row)
    return row


class ArchiveCases(StoreCase):
    """What the archive asks of a store."""

    async def test_a_session_leaves_and_comes_back_as_it_was(self, store: Store) -> None:
        pen = await long_life(store)
        before = pen.head
        rows = await store.messages(SCOPE, retired=True)
        summaries = await store.summaries(SCOPE, retired=True)
        row = await archived(store, pen)

        gone = await store.head(SCOPE)
        assert gone is not None
        assert (
            gone
            == pen.head
            == replace(before, archived="one", commit_id=gone.commit_id, ancestors=gone.ancestors)
        )
        assert gone.grew_from(before)
        assert not gone.same_as(before)
        assert await store.messages(SCOPE, retired=True) == []
        assert await store.summaries(SCOPE, retired=True) == []
        assert await store.list_sessions("acme", limit=9) == [gone]
        assert await store.current_session("acme", "main", "key") == "s1"
        assert await store.archives.object_of(gone) == replace(row, stage=1)
        assert await store.archives.totals() == ArchiveTotals(1, 100, 0)

        back = await store.archives.put_back(gone, rows, summaries, 7_000)
        assert await store.head(SCOPE) == back
        assert back == replace(before, commit_id=back.commit_id, ancestors=back.ancestors)
        assert back.grew_from(before)
        assert back.grew_from(gone)
        assert await store.messages(SCOPE, retired=True) == rows
        assert await store.summaries(SCOPE, retired=True) == summaries
        assert await store.reply(SCOPE, "r1") == StoredReply("r1", b"digest", b"reply")
        assert await store.archives.totals() == ArchiveTotals(0, 0, 0)
        pen.head = back
        await pen.write(count=1)  # it goes on
        assert await pen.sequences() == [1, 3, 4]

    async def test_nothing_is_indexed_while_it_is_away(self, store: Store) -> None:
        """What is not there is no end of it."""
        pen = await long_life(store)
        whole = await store.index.progress(SCOPE)
        rows = await store.messages(SCOPE, retired=True)
        summaries = await store.summaries(SCOPE, retired=True)
        await archived(store, pen)
        assert await store.index.progress(SCOPE) is None
        await store.archives.put_back(pen.head, rows, summaries, 2_000)
        assert await store.index.progress(SCOPE) == whole

    async def test_nobody_ends_what_is_in_the_archive(self, store: Store) -> None:
        pen = await long_life(store)
        assert await store.idle_sessions(NEVER, 9) == [pen.head]
        await archived(store, pen)
        assert await store.idle_sessions(NEVER, 9) == []

    async def test_what_moved_outlives_a_restart(self, store: Store, reopen: Any) -> None:
        pen = await long_life(store)
        row = await archived(store, pen)
        again = await reopen()
        assert await again.head(SCOPE) == pen.head
        assert await again.archives.object_of(pen.head) == replace(row, stage=1)

    async def test_a_write_between_wins(self, store: Store, other: Store) -> None:
        pen = await long_life(store)
        seen, row = pen.head, an_object(pen)
        await store.archives.reserve(row)
        await Pen.write(pen, count=1)
        with pytest.raises(RevisionConflict):
            await other.archives.move(seen, row)
        assert await store.head(SCOPE) == pen.head
        assert len(await store.messages(SCOPE, retired=True)) == 4
        assert [one.stage for one in await store.archives.release("", stale_ms=0, kept_ms=0)] == []

    async def test_one_of_two_moves_wins(self, store: Store, other: Store) -> None:
        pen = await long_life(store)
        seen = pen.head
        for name in ("one", "two"):
            await store.archives.reserve(an_object(pen, name))
        await other.archives.move(seen, an_object(pen, "two"))
        with pytest.raises(RevisionConflict):
            await store.archives.move(seen, an_object(pen, "one"))

    async def test_one_of_two_puts_back(self, store: Store, other: Store) -> None:
        pen = await long_life(store)
        rows = await store.messages(SCOPE, retired=True)
        await archived(store, pen)
        back = await store.archives.put_back(pen.head, rows, [], 1)
        with pytest.raises(RevisionConflict):
            await other.archives.put_back(pen.head, rows, [], 2)
        assert await other.head(SCOPE) == back
        assert await other.messages(SCOPE, retired=True) == rows

    async def test_nothing_is_written_behind_rows_that_are_elsewhere(self, store: Store) -> None:
        pen = await long_life(store)
        seen = pen.head
        await archived(store, pen)
        with pytest.raises(StoreError, match="archive"):
            await store.commit(pen.next(count=1))
        pen.head = seen
        with pytest.raises(RevisionConflict):
            await store.commit(pen.next(count=1))
        with pytest.raises(RevisionConflict):
            await store.commit(pen.next(head={"model": "other"}))
        assert await store.messages(SCOPE, retired=True) == []

    async def test_an_object_that_lacks_a_row_takes_none(self, store: Store) -> None:
        pen = await long_life(store)
        row = an_object(pen, messages=2)
        await store.archives.reserve(row)
        with pytest.raises(StoreError, match="does not hold all"):
            await store.archives.move(pen.head, row)
        assert await store.head(SCOPE) == pen.head
        assert len(await store.messages(SCOPE, retired=True)) == 3
        assert len(await store.summaries(SCOPE, retired=True)) == 2

    async def test_an_object_that_was_given_up_takes_none(self, store: Store) -> None:
        pen = await long_life(store)
        row = an_object(pen)
        await store.archives.reserve(row)
        doomed = await store.archives.release("", stale_ms=1_001, kept_ms=0)
        assert doomed == [replace(row, stage=2)]
        with pytest.raises(RevisionConflict):
            await store.archives.move(pen.head, row)
        await store.archives.erased(doomed)
        with pytest.raises(RevisionConflict):
            await store.archives.move(pen.head, row)
        assert await store.head(SCOPE) == pen.head
        assert len(await store.messages(SCOPE, retired=True)) == 3

    async def test_what_owes_work_stays(self, store: Store) -> None:
        pen = await long_life(store)
        await store.add_debt(debt(SCOPE))
        assert await store.archives.idle("acme", NEVER, 9) == []
        await store.archives.reserve(an_object(pen))
        with pytest.raises(RevisionConflict):
            await store.archives.move(pen.head, an_object(pen))
        [owed] = await store.debts(SCOPE)
        claimed = await store.claim_debt("me", 5_000, 1_000)
        assert claimed is not None
        await store.release_debt(claimed, done=False, held=True)
        assert owed.kind == claimed.kind
        assert await store.archives.idle("acme", NEVER, 9) == [pen.head]
        await store.archives.move(pen.head, an_object(pen))

    async def test_idle_sessions_come_in_order_and_by_page(self, store: Store) -> None:
        pens = []
        for at, name in enumerate(("c", "a", "b", "empty")):
            pen = Pen(store, Scope("acme", "main", name), updated_ms=100 * (at // 2))
            await pen.write(count=0 if name == "empty" else 1)
            pens.append(pen)
        other = Pen(store, Scope("beta", "main", "x"))
        await other.write(count=1)
        ended = pens[0]
        await ended.write(head={"ended": True, "updated_ms": 1})
        a, b, c = pens[1].head, pens[2].head, pens[0].head
        assert await store.archives.idle("acme", 1_000, 9) == [a, c, b]
        assert await store.archives.idle("acme", 1_000, 1) == [a]
        after = a.updated_ms, a.scope.agent, a.scope.session
        assert await store.archives.idle("acme", 1_000, 9, after=after) == [c, b]
        assert await store.archives.idle("acme", 101, 9) == [a, c]

    async def test_what_came_back_stays_for_a_while(self, store: Store) -> None:
        pen = await long_life(store)
        rows = await store.messages(SCOPE, retired=True)
        summaries = await store.summaries(SCOPE, retired=True)
        await archived(store, pen)
        assert await store.archives.idle("acme", NEVER, 9) == []
        pen.head = await store.archives.put_back(pen.head, rows, summaries, 7_000)
        assert await store.archives.idle("acme", 7_000, 9) == []
        assert await store.archives.idle("acme", 7_001, 9) == [pen.head]

    async def test_objects_are_kept_while_they_are_needed(self, store: Store) -> None:
        pen = await long_life(store)
        rows = await store.messages(SCOPE, retired=True)
        row = await archived(store, pen)
        assert await store.archives.release("", stale_ms=NEVER, kept_ms=NEVER) == []
        pen.head = await store.archives.put_back(pen.head, rows, [], 7_000)
        assert await store.archives.release("", stale_ms=NEVER, kept_ms=7_000) == []
        assert await store.archives.release("other", stale_ms=NEVER, kept_ms=7_001) == []
        doomed = await store.archives.release("acme", stale_ms=NEVER, kept_ms=7_001)
        assert doomed == [replace(row, stage=2, freed_ms=7_000)]
        assert await store.archives.totals() == ArchiveTotals(0, 0, 1)
        # They are told until they are gone, whatever else there is to do.
        assert await store.archives.release("", stale_ms=0, kept_ms=0) == doomed
        await store.archives.erased(doomed)
        assert await store.archives.release("", stale_ms=NEVER, kept_ms=NEVER) == []

    async def test_an_archived_session_is_deleted_like_any(self, store: Store) -> None:
        pen = await long_life(store)
        row = await archived(store, pen)
        deleted = await store.delete(SCOPE, expected_revision=3, cascade=False)
        assert deleted.sessions == ("s1",)
        assert await store.head(SCOPE) is None
        again = Pen(store, incarnation="second life")
        await again.write(count=1)
        assert await store.archives.object_of(replace(again.head, archived="one")) is None
        # Its object is not kept for anybody.
        assert await store.archives.release("", stale_ms=0, kept_ms=0) == [replace(row, stage=2)]
        assert await store.forget("acme") == 0
        assert (await store.archives.totals()).doomed == 1
        with pytest.raises(RevisionConflict):
            await store.archives.put_back(pen.head, [message(1)], [], 1)
        assert len(await store.messages(SCOPE, retired=True)) == 1

    async def test_observers_are_told_of_both_ways(self, store: Store) -> None:
        told: list[Commit] = []

        class Told:
            def committed(self, commit: Commit) -> None:
                told.append(commit)

            def erased(self, scopes: object) -> None:
                raise AssertionError

        pen = await long_life(store)
        rows = await store.messages(SCOPE, retired=True)
        store.observe(Told())
        await archived(store, pen)
        back = await store.archives.put_back(pen.head, rows, [], 1)
        assert [commit.head for commit in told] == [pen.head, back]
        assert [len(commit.messages) for commit in told] == [0, 3]
