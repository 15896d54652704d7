"""What one commit writes, when it is refused, and that it is all or nothing."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.errors import (
    DuplicateHostIds,
    DuplicateRequest,
    RevisionConflict,
    StoreError,
)
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Facts, SessionHead, StoredReply

from .case import Reopen, StoreCase
from .rows import SCOPE, Pen, debt, message, summary


async def everything(store: Store, scope: Scope = SCOPE) -> Any:
    """All that the store says of a session."""
    head = await store.head(scope)
    return (
        head,
        await store.messages(scope, retired=True),
        await store.summaries(scope, retired=True),
        await store.debts(scope),
        await store.reply(scope, "r1"),
        await store.current_session(scope.tenant, scope.agent, "key"),
    )


BROKEN: list[dict[str, Any]] = [
    {"messages": [message(3, 2), message(1, 2)]},
    {"summaries": [summary("kept", 1, 2, 2)]},
    {"retire_summaries": ["unknown"]},
    {"retire_summaries": ["gone"]},
    {"facts": [Facts(1, 0, 0, None), Facts(9, 0, 0, None)]},
    {"bind_key": True},
    {"debt": debt(Scope("acme", "main", "another"))},
]


WILD = "before\x00behind \u202e\U0001f600"
"""What models and people write: any character that UTF-8 has."""


class CommitCases(StoreCase):
    """What one commit writes, when it is refused, and that it is all or nothing."""

    async def test_a_commit_is_read_back_as_it_was_written(
        self, store: Store, reopen: Reopen
    ) -> None:
        head = SessionHead(
            SCOPE,
            incarnation="i-1",
            revision=1,
            last_sequence=2,
            session_key="key",
            message_count=2,
            message_tokens=2**40,
            summary_count=1,
            generation=3,
            ended=True,
            created_ms=1_700_000_000_000,
            updated_ms=1_700_000_000_001,
            parent_session="parent",
            parent_incarnation="life of the parent",
            parent_revision=7,
            parent_sequence=9,
            model="model-1",
            provider="provider-1",
            state=b'{"opaque": "\xc3\xa9"}\x00\xff',
            commit_id=b"\x00 of this \xff\xfe",
            ancestors=b"",
        )
        full = message(
            1,
            role=99,
            tokens=2**33,
            host_id="h-1 é\U0001f600",
            time_ms=-5,
            pinned=True,
            step=4,
            start=2**40,
            late_of=3,
        )
        bare = message(
            2, body=b"", host_id="", time_ms=None, pinned=False, step=None, start=None, late_of=None
        )
        note = summary(
            "sum 1",
            1,
            2,
            depth=2,
            retired_revision=0,
            children=("a", "b é"),
            start_ms=1,
            end_ms=2,
            summarizer="extractive",
            fallback=True,
            generation=3,
            origin="host",
            wanted="a model é",
            remakes="sum 0",
        )
        note = replace(note, text=WILD)
        owed = debt(
            SCOPE,
            cause="00-trace",
            payload=b"\x00\x01",
            not_before_ms=5,
            last_error=WILD,
            held=True,
        )
        pen = Pen(store)
        change = replace(pen.next(), head=head, messages=[full, bare], summaries=[note], debt=owed)
        reply = StoredReply("r1", b"\x00digest", b"\xffreply")
        await store.commit(replace(change, reply=reply, bind_key=True))

        async def check(read: Store) -> None:
            assert await read.head(SCOPE) == head
            rows = await read.messages(SCOPE)
            assert rows == [full, bare]
            assert [row.pinned for row in rows] == [True, False]
            assert await read.summaries(SCOPE) == [note]
            assert await read.debts(SCOPE) == [owed]
            assert await read.reply(SCOPE, "r1") == reply
            assert await read.current_session("acme", "main", "key") == "s1"
            found = await read.head(SCOPE)
            assert found is not None
            assert found.ended is True
            assert isinstance(found.scope, Scope)

        await check(store)
        again = await reopen()
        await check(again)

    async def test_a_new_session_must_not_exist(self, store: Store) -> None:
        await Pen(store).write(count=1)
        with pytest.raises(RevisionConflict) as refused:
            await Pen(store, incarnation="another").write(count=1)
        assert (refused.value.expected, refused.value.actual) == (0, 1)

    @pytest.mark.parametrize("expected", [1, 3, 99])
    async def test_a_commit_for_another_revision_is_refused(
        self, store: Store, expected: int
    ) -> None:
        pen = Pen(store)
        await pen.write(count=1)
        await pen.write(count=1)
        before = await everything(store)
        with pytest.raises(RevisionConflict) as refused:
            await pen.write(count=1, expected_revision=expected)
        assert (refused.value.scope, refused.value.expected, refused.value.actual) == (
            SCOPE,
            expected,
            2,
        )
        assert await everything(store) == before

    async def test_a_commit_for_a_session_that_is_gone_is_refused(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(count=1)
        await store.delete(SCOPE, expected_revision=None, cascade=False)
        with pytest.raises(RevisionConflict) as refused:
            await pen.write(count=1)
        assert refused.value.actual is None

    async def test_a_commit_for_another_life_of_the_session_is_refused(self, store: Store) -> None:
        old = Pen(store)
        await old.write(count=1)
        await store.delete(SCOPE, expected_revision=1, cascade=False)
        await Pen(store, incarnation="second life").write(count=1)
        with pytest.raises(RevisionConflict) as refused:
            await old.write(count=1)
        assert refused.value.actual == 1
        found = await store.head(SCOPE)
        assert found is not None
        assert found.incarnation == "second life"

    @pytest.mark.parametrize("batch", [1, 2, 700])
    async def test_stored_host_ids_are_named_and_nothing_is_written(
        self, store: Store, batch: int
    ) -> None:
        pen = Pen(store)
        await pen.write(messages=[message(n, host_id=f"h{n}") for n in range(1, 4)])
        before = await everything(store)
        new = [message(3 + n, 2, host_id=f"new{n}") for n in range(1, batch + 1)]
        new[-1] = replace(new[-1], host_id="h2")
        new.append(message(4 + batch, 2, host_id="h1"))
        with pytest.raises(DuplicateHostIds) as refused:
            await pen.write(
                messages=new, summaries=[summary("s", 1, 2, 2)], reply=StoredReply("r1", b"", b"")
            )
        assert refused.value.ids == ("h2", "h1")
        assert await everything(store) == before

    async def test_a_host_id_twice_in_one_commit_is_a_duplicate(self, store: Store) -> None:
        with pytest.raises(DuplicateHostIds) as refused:
            await Pen(store).write(
                messages=[message(1, host_id="a"), message(2, host_id="b"), message(3, host_id="a")]
            )
        assert refused.value.ids == ("a",)
        assert await store.head(SCOPE) is None

    async def test_a_host_id_is_free_again_once_its_row_is_retired(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(messages=[message(1, host_id="a"), message(2, host_id="b")])
        await pen.write(retire_after=1, messages=[message(3, 2, host_id="b")])
        assert await pen.sequences() == [1, 3]
        with pytest.raises(DuplicateHostIds):
            await pen.write(retire_after=2, messages=[message(4, 3, host_id="a")])

    async def test_messages_without_a_host_id_are_never_duplicates(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(messages=[message(1, body=b"same"), message(2, body=b"same")])
        assert await pen.sequences() == [1, 2]

    async def test_answers_to_revisions_that_never_were_are_counted_and_erased(
        self, store: Store
    ) -> None:
        pen, other = Pen(store), Pen(store, SCOPE._replace(session="other"))
        for at in (1, 2, 3):
            await pen.write(count=1, reply=StoredReply(f"r{at}", b"", b""))
            await other.write(count=1, reply=StoredReply(f"r{at}", b"", b""))
        assert await store.stray_replies(SCOPE, 3) == 0
        assert await store.stray_replies(SCOPE, 1) == 2
        assert await store.reply(SCOPE, "r3") is not None
        assert await store.stray_replies(SCOPE, 1, erase=True) == 2
        assert await store.stray_replies(SCOPE, 0) == 1
        assert await store.reply(SCOPE, "r1") == StoredReply("r1", b"", b"")
        assert await store.reply(SCOPE, "r2") is None
        assert await store.stray_replies(other.scope, 0) == 3

    async def test_an_answered_request_is_told_with_its_reply(self, store: Store) -> None:
        pen = Pen(store)
        stored = StoredReply("r1", b"digest", b"reply")
        await pen.write(count=1, reply=stored)
        before = await everything(store)
        for change in ({}, {"expected_revision": 0}, {"messages": [message(1, 2)]}):
            with pytest.raises(DuplicateRequest) as refused:
                await pen.write(reply=StoredReply("r1", b"other", b"other"), **change)
            assert refused.value.stored == stored
        assert await everything(store) == before
        await pen.write(count=1, reply=StoredReply("r2", b"", b""))
        assert await store.reply(SCOPE, "r1") == stored
        assert await store.reply(SCOPE, "r3") is None

    async def test_a_lost_race_is_told_before_a_duplicate(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(messages=[message(1, host_id="a")])
        with pytest.raises(RevisionConflict):
            await pen.write(expected_revision=5, messages=[message(2, 2, host_id="a")])

    @pytest.mark.parametrize("wrong", BROKEN, ids=[str(n) for n in range(len(BROKEN))])
    async def test_a_commit_at_odds_with_the_rows_is_refused_whole(
        self, store: Store, wrong: dict[str, Any]
    ) -> None:
        pen = Pen(store)
        await pen.write(
            count=2, summaries=[summary("kept", 1, 1), summary("gone", 2, 2)], debt=debt(SCOPE)
        )
        await pen.write(retire_summaries=["gone"])
        before = await everything(store)
        change = {
            "retire_after": 1,
            "settle_debt": "compact",
            "reply": StoredReply("r1", b"", b""),
            **wrong,
        }
        with pytest.raises(StoreError) as refused:
            await pen.write(**change)
        assert type(refused.value) is StoreError
        assert await everything(store) == before

    @pytest.mark.parametrize(
        "scope", [Scope("", "a", "s"), Scope("t", "", "s"), Scope("t", "a", "")]
    )
    async def test_an_incomplete_scope_is_not_written(self, store: Store, scope: Scope) -> None:
        with pytest.raises(StoreError):
            await Pen(store, scope).write(count=1)
        assert await store.head(scope) is None
        assert await store.messages(scope) == []

    async def test_retiring_leaves_the_rows(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(count=4, summaries=[summary("a", 1, 2), summary("b", 3, 4)])
        await pen.write(retire_after=2, retire_summaries=["b"])
        await pen.write(count=1)
        assert await pen.sequences() == [1, 2, 5]
        retired = [
            (row.sequence, row.retired_revision)
            for row in await store.messages(SCOPE, retired=True)
        ]
        assert retired == [(1, 0), (2, 0), (3, 2), (4, 2), (5, 0)]
        assert [
            (row.id, row.retired_revision) for row in await store.summaries(SCOPE, retired=True)
        ] == [
            ("a", 0),
            ("b", 2),
        ]
        await pen.write(retire_after=0)
        assert await pen.sequences() == []
        retired = [
            (row.sequence, row.retired_revision)
            for row in await store.messages(SCOPE, retired=True)
        ]
        assert retired == [(1, 4), (2, 4), (3, 2), (4, 2), (5, 4)]

    async def test_facts_are_worked_out_again(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(count=3)
        await pen.write(retire_after=2, facts=[Facts(1, None, None, 7), Facts(3, 8, 80, None)])
        rows = await store.messages(SCOPE, retired=True)
        facts = [(row.step, row.start, row.late_of) for row in rows]
        assert facts == [(None, None, 7), (1, 10, None), (8, 80, None)]

    async def test_shifts_move_what_is_live_and_begins_behind_them(self, store: Store) -> None:
        pen = Pen(store)
        rows = [message(1), message(2), message(3, step=1, start=None), message(4), message(5)]
        await pen.write(
            messages=rows, summaries=[summary("a", 1, 2), summary("b", 4, 4), summary("c", 5, 5)]
        )
        await pen.write(retire_after=4, retire_summaries=["c"])
        await pen.write(
            shifts=[(1, 9), (2, -2)],
            facts=[Facts(4, 3, 1000, None)],
            messages=[message(6, 3)],
            summaries=[summary("d", 6, 6, 3)],
        )
        starts = {row.sequence: row.start for row in await store.messages(SCOPE, retired=True)}
        assert starts == {1: 0, 2: 19, 3: None, 4: 1000, 5: 40, 6: 50}
        spans = {
            row.id: (row.span_start, row.span_end)
            for row in await store.summaries(SCOPE, retired=True)
        }
        assert spans == {"a": (0, 20), "b": (37, 47), "c": (40, 50), "d": (50, 60)}

    async def test_the_head_is_what_the_commit_says(self, store: Store, reopen: Reopen) -> None:
        pen = Pen(store)
        await pen.write(count=1)
        changed = {
            "session_key": "k",
            "parent_session": "p",
            "parent_incarnation": "life of p",
            "created_ms": 8,
            "ended": True,
            "state": b"[]",
            "model": "m",
        }
        await pen.write(head=changed)
        assert await store.head(SCOPE) == pen.head
        again = await reopen()
        assert await again.head(SCOPE) == pen.head
