"""Two servers over one database: who writes first wins, the other is told, and both see the same.

Where a store is not shared, both are one store, and the same must hold of two writers there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.errors import (
    DuplicateHostIds,
    DuplicateRequest,
    HasDependents,
    ParentGone,
    RevisionConflict,
    TooManyChildren,
)
from contextengine_server.store.model_jobs import JobOutcome, ModelJob
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import (
    Assignment,
    Commit,
    Parent,
    SessionHead,
    Spawn,
    StoredReply,
)

from ..case import StoreCase
from ..rows import SCOPE, Pen, debt, message, summary

JOB = ModelJob("acme", "j1", "digest", "main", "s1", 10, 1_000, work=b"work")
SPAWN = Spawn(
    "acme", "t", "main", "child", "main", "s1", parent_revision=1, parent_sequence=0, fork=False,
    depth=1, created_ms=100, ttl_ms=1_000, expire_ms=1_100, request_id="r1", grant_tokens=10,
)  # fmt: skip


async def follow(pen: Pen, store: Store) -> Pen:
    """A pen at the same session of another store, as far as that store is."""
    head = await store.head(pen.scope)
    assert head is not None
    mine = Pen(store, pen.scope)
    mine.head = head
    return mine


async def prepare(store: Store, token: str, most: int = 9, request: str = "r1") -> Spawn:
    """Spawns a child named by its token."""
    spawn = replace(SPAWN, token=token, session=token, request_id=request)
    head = SessionHead(spawn.child, f"life of {token}", 1, 0, updated_ms=100)
    return await store.spawns.prepare(spawn, Commit(head, 0), most)


class WriterCases(StoreCase):
    """Two servers over one database: who writes first wins, the other is told, and both see the
    same."""

    async def test_who_lost_a_race_catches_up_and_goes_on(self, store: Store, other: Store) -> None:
        first = Pen(store)
        await first.write(count=2, summaries=[summary("kept", 1, 1), summary("gone", 2, 2)])
        second = await follow(first, other)
        await second.write(count=1, retire_after=1, retire_summaries=["gone"])
        with pytest.raises(RevisionConflict) as refused:
            await first.write(count=1)
        assert (refused.value.expected, refused.value.actual) == (1, 2)
        changes = await store.changes(SCOPE, 1)
        assert changes is not None
        assert changes.head == second.head == await store.head(SCOPE)
        assert [(row.sequence, row.retired_revision) for row in changes.messages] == [
            (2, 2),
            (3, 0),
        ]
        assert [(row.id, row.retired_revision) for row in changes.summaries] == [("gone", 2)]
        first.head = changes.head
        await first.write(count=1)
        assert await other.head(SCOPE) == first.head
        assert await (await follow(first, other)).sequences() == [1, 3, 4]

    @pytest.mark.parametrize("usual", [True, False])
    async def test_a_commit_stands_on_a_commit_and_not_on_a_number(
        self, store: Store, other: Store, usual: bool
    ) -> None:
        """Where a database lost what was committed last and went on from before it, revisions come
        again."""
        first = Pen(store)
        await first.write(count=1)
        second = await follow(first, other)
        lost = await follow(first, store)
        lost.head = lost.next(count=1).head  # what was lost
        await second.write(count=1)
        assert lost.head.revision == second.head.revision
        with pytest.raises(RevisionConflict) as refused:
            await lost.write(count=1, **({} if usual else {"reply": StoredReply("r", b"", b"")}))
        assert (refused.value.expected, refused.value.actual) == (2, 2)
        assert await store.head(SCOPE) == second.head
        assert await store.reply(SCOPE, "r") is None
        assert await second.sequences() == [1, 2]
        assert second.head.grew_from(first.head)
        assert not second.head.grew_from(lost.head)

    async def test_a_late_result_of_the_other_is_among_the_changes(
        self, store: Store, other: Store
    ) -> None:
        first = Pen(store)
        await first.write(messages=[message(1), message(2)])
        second = await follow(first, other)
        late = message(3, 2, step=0, start=None, late_of=1)
        await second.write(messages=[late], shifts=[(1, 10)])
        changes = await store.changes(SCOPE, 1)
        assert changes is not None
        assert list(changes.messages) == [late]
        assert await store.late_results(SCOPE, 1, 1) == [late]
        assert [row.start for row in await store.messages(SCOPE)] == [0, 20, None]

    async def test_of_two_who_begin_a_session_one_does(self, store: Store, other: Store) -> None:
        pens = [Pen(store, incarnation="one"), Pen(other, incarnation="two")]
        outcomes = await asyncio.gather(
            *(pen.write(count=1) for pen in pens), return_exceptions=True
        )
        (lost,) = [one for one in outcomes if isinstance(one, BaseException)]
        assert isinstance(lost, RevisionConflict)
        assert (lost.expected, lost.actual) == (0, 1)
        heads = [await one.head(SCOPE) for one in (store, other)]
        assert heads[0] == heads[1]
        assert heads[0] is not None
        assert heads[0].incarnation == ("two" if outcomes[1] is not lost else "one")

    async def test_ids_that_the_other_took_are_taken(self, store: Store, other: Store) -> None:
        first = Pen(store)
        await first.write(count=1)
        second = await follow(first, other)
        reply = StoredReply("r1", b"digest", b"reply")
        await second.write(messages=[message(2, 2, host_id="h1")], reply=reply)
        first.head = second.head
        with pytest.raises(DuplicateHostIds) as duplicate:
            await first.write(messages=[message(3, 3, host_id="h1")])
        assert duplicate.value.ids == ("h1",)
        with pytest.raises(DuplicateRequest) as answered:
            await first.write(count=1, reply=StoredReply("r1", b"another", b""))
        assert answered.value.stored == reply
        assert await store.reply(SCOPE, "r1") == reply

    async def test_a_session_that_the_other_deleted_is_gone(
        self, store: Store, other: Store
    ) -> None:
        first = Pen(store, session_key="key")
        await first.write(count=2, bind_key=True, debt=debt(SCOPE))
        await other.delete(SCOPE, expected_revision=1, cascade=False)
        assert await store.head(SCOPE) is None
        assert await store.changes(SCOPE, 0) is None
        assert await store.current_session("acme", "main", "key") is None
        assert await store.messages(SCOPE, retired=True) == []
        assert await store.claim_debt("w", 9_999, 10) is None
        with pytest.raises(RevisionConflict) as refused:
            await first.write(count=1)
        assert refused.value.actual is None

    async def test_a_session_deleted_and_made_again_is_another(
        self, store: Store, other: Store
    ) -> None:
        first = Pen(store)
        await first.write(messages=[message(1, host_id="h1")])
        await other.delete(SCOPE, expected_revision=None, cascade=False)
        again = Pen(other, incarnation="second life")
        await again.write(messages=[message(1, body=b"of the second life", host_id="h1")])
        found = await store.head(SCOPE)
        assert found is not None
        assert (found.incarnation, found.revision) == ("second life", first.head.revision)
        changes = await store.changes(SCOPE, first.head.revision)
        assert changes is not None
        assert changes.head.incarnation == "second life"
        with pytest.raises(RevisionConflict) as refused:
            await first.write(count=1)
        assert (refused.value.expected, refused.value.actual) == (1, 1)
        assert [row.body for row in await store.messages(SCOPE)] == [b"of the second life"]

    async def test_many_who_race_for_one_session_lose_nothing(
        self, store: Store, other: Store
    ) -> None:
        await Pen(store).write()
        stores = [store, other]

        async def append(number: int) -> None:
            while True:
                pen = await follow(Pen(store), stores[number % 2])
                last = pen.head.last_sequence
                row = message(last + 1, pen.head.revision + 1, host_id=f"h{number}")
                try:
                    await pen.write(messages=[row])
                except RevisionConflict:
                    continue
                return

        await asyncio.gather(*(append(number) for number in range(24)))
        for one in stores:
            rows = await one.messages(SCOPE)
            assert [row.sequence for row in rows] == list(range(1, 25))
            assert sorted(row.host_id for row in rows) == sorted(f"h{n}" for n in range(24))
            assert [row.created_revision for row in rows] == list(range(2, 26))

    async def test_a_key_names_what_either_bound(self, store: Store, other: Store) -> None:
        await Pen(store, session_key="key").write(bind_key=True)
        assert await other.current_session("acme", "main", "key") == "s1"
        newer = Pen(other, SCOPE._replace(session="s2"), session_key="key")
        await newer.write(bind_key=True)
        assert await store.current_session("acme", "main", "key") == "s2"

    async def test_an_observer_hears_each_commit_of_its_own_store_once(
        self, store: Store, other: Store
    ) -> None:
        heard: list[Commit | Sequence[Scope]] = []

        class Observer:
            def committed(self, commit: Commit) -> None:
                heard.append(commit)

            def erased(self, scopes: Sequence[Scope]) -> None:
                heard.append(list(scopes))

        store.observe(Observer())
        pen = Pen(store)
        written = await pen.write(count=1)
        with pytest.raises(RevisionConflict):
            await pen.write(expected_revision=7)
        foreign = await (await follow(pen, other)).write(count=1)
        await store.delete(SCOPE, expected_revision=None, cascade=False)
        assert heard == [written, *([] if self.shared else [foreign]), [SCOPE]]

    async def test_a_debt_is_leased_to_one(self, store: Store, other: Store) -> None:
        await store.add_debt(debt(SCOPE))
        claims = await asyncio.gather(
            *(one.claim_debt(owner, 0, 10) for owner, one in (("a", store), ("b", other)))
        )
        (mine,) = [claim for claim in claims if claim is not None]
        assert await other.debts(SCOPE) == [mine]
        again = await other.claim_debt("b", 10, 10)
        assert again is not None
        assert again.attempts == 2
        assert await store.extend_debt(mine, 99) is False
        await store.release_debt(mine, done=True)
        assert await store.debts(SCOPE) == [again]

    async def test_a_job_is_leased_to_one_and_answered_once(
        self, store: Store, other: Store
    ) -> None:
        await store.model_leases.offer(JOB, 0)
        same = await other.model_leases.offer(replace(JOB, id="j2"), 0)
        assert same.id == "j1"
        claims = await asyncio.gather(
            *(
                one.model_leases.claim("acme", lease, 0, 60, most_attempts=3)
                for lease, one in (("a", store), ("b", other))
            )
        )
        (mine,) = [claim for claim in claims if claim is not None]
        answers = await asyncio.gather(
            *(
                one.model_leases.answer("acme", "j1", mine.lease_id, b"said", 10)
                for one in (store, other)
            )
        )
        assert sorted(answers, key=lambda one: one.value) == [
            JobOutcome.ACCEPTED,
            JobOutcome.TWICE,
        ]
        taken = await other.model_leases.find("acme", "j1")
        assert taken is not None
        assert taken.result == b"said"

    async def test_no_change_of_a_guard_is_lost(self, store: Store, other: Store) -> None:
        def count(state: bytes) -> tuple[bytes, int]:
            after = int(state or b"0") + 1
            return str(after).encode(), after

        answers = await asyncio.gather(
            *((store, other)[n % 2].guards.change("acme", count) for n in range(40))
        )
        assert sorted(answers) == list(range(1, 41))

    async def test_a_request_spawns_one_child_whoever_is_asked(
        self, store: Store, other: Store
    ) -> None:
        await Pen(store).write()
        made = await asyncio.gather(prepare(store, "a"), prepare(other, "b"))
        assert made[0] == made[1]
        assert await store.spawns.live_children(SCOPE) == 1
        done = await asyncio.gather(
            *(prepare((store, other)[n % 2], f"c{n}", most=3, request=f"c{n}") for n in range(6)),
            return_exceptions=True,
        )
        assert len([one for one in done if isinstance(one, TooManyChildren)]) == 4
        assert await other.spawns.live_children(SCOPE) == 3

    async def test_tokens_are_spent_once_whoever_is_asked(self, store: Store, other: Store) -> None:
        await Pen(store).write()
        await prepare(store, "t")
        done = await asyncio.gather(
            *((store, other)[n % 2].spawns.spend("acme", "t", 3) for n in range(6))
        )
        assert sorted(done) == [False, False, False, True, True, True]
        ended = await asyncio.gather(
            *(
                one.spawns.end("acme", "t", "rolled_back", 200, take_back=True)
                for one in (store, other)
            )
        )
        assert len([one for one in ended if one is not None]) == 1
        assert await store.head(SCOPE._replace(session="t")) is None
        assert await other.head(SCOPE._replace(session="t")) is None

    async def test_a_choice_of_the_other_is_seen(self, store: Store, other: Store) -> None:
        choice = Assignment("acme", "main", "", "dag")
        await other.assign(choice)
        assert await store.assignments("acme") == [choice]

    @pytest.mark.parametrize("fate", ["deleted", "made anew"])
    async def test_nobody_begins_to_stand_on_what_is_gone(
        self, store: Store, other: Store, fate: str
    ) -> None:
        """Who read the parent before it was deleted elsewhere writes nothing."""
        parent = Pen(store)
        await parent.write(count=2)
        child = Pen(other, SCOPE._replace(session="child"))
        stands = Parent(SCOPE, "first life")
        await store.delete(SCOPE, expected_revision=None, cascade=False)
        if fate == "made anew":
            await Pen(store, incarnation="second life").write(count=1)
        with pytest.raises(ParentGone):
            await child.write(count=1, parent=stands)
        assert await other.head(child.scope) is None
        if fate == "made anew":
            commit = Commit(SessionHead(child.scope, "x", 1, 0), 0, parent=stands)
            with pytest.raises(ParentGone):
                await other.spawns.prepare(replace(SPAWN, session="child"), commit, 9)
            assert await other.head(child.scope) is None

    async def test_who_stands_on_a_session_is_known_to_its_deletion(
        self, store: Store, other: Store
    ) -> None:
        await Pen(store).write(count=2)
        joined = {"parent_session": SCOPE.session, "parent_incarnation": "first life"}
        child = Pen(other, SCOPE._replace(session="child"), **joined)
        await child.write(count=1, parent=Parent(SCOPE, "first life"))
        with pytest.raises(HasDependents):
            await store.delete(SCOPE, expected_revision=None, cascade=False)
        await child.write(count=1)
        assert await store.head(SCOPE) is not None
