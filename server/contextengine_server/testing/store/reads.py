"""What is read: ranges, revisions, atoms, summaries, changes. And that nothing of another
scope ever is."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import MessageRow, StoredReply

from .agents.chunks import keep
from .agents.memory import fact, found
from .case import StoreCase
from .rows import SCOPE, Pen, debt, message, summary


def sequences(rows: list[MessageRow]) -> list[int]:
    return [row.sequence for row in rows]


def atoms() -> list[MessageRow]:
    """Six atoms: a call with two results, the second late; a plain one; one pinned; an abandoned
    call; a note between a call and its result, a step before them."""
    return [
        message(1, step=0, start=0),
        message(2, step=0, start=None),
        message(3, step=1, start=20),
        message(4, step=0, start=None, late_of=1, pinned=True),
        message(5, step=2, start=30, pinned=True),
        message(6, step=None, start=None, pinned=True),  # an orphan: shown nowhere
        message(7, step=4, start=60),
        message(8, step=3, start=50),  # the note
        message(9, step=4, start=None, pinned=True),
        message(10, step=4, start=None),
        message(11, step=5, start=90),
    ]


class ReadCases(StoreCase):
    """Ranges, revisions, atoms, summaries, changes. And that nothing of another scope ever
    is read."""

    async def test_a_range_of_messages(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(count=10)
        assert await pen.sequences() == list(range(1, 11))
        assert await pen.sequences(first=4) == [4, 5, 6, 7, 8, 9, 10]
        assert await pen.sequences(first=4, last=6) == [4, 5, 6]
        assert await pen.sequences(first=7, last=6) == []
        assert await pen.sequences(first=11) == []

    async def test_messages_at_some_sequences(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(count=6)  # 1: 1 to 6
        await pen.write(retire_after=4, count=1)  # 2: 1 to 4, 7
        asked = [7, 5, 2, 2, 99]
        at = store.messages_at
        assert sequences(await at(SCOPE, asked)) == [2, 7]
        assert sequences(await at(SCOPE, asked, as_of=1)) == [2, 5]
        assert sequences(await at(SCOPE, asked, retired=True)) == [2, 5, 7]
        assert sequences(await at(SCOPE, asked, as_of=1, retired=True)) == [2, 5]
        assert await at(SCOPE, []) == []
        assert await at(SCOPE._replace(session="another"), asked) == []

    async def test_messages_as_of_a_revision(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(count=3)  # 1: 1 2 3
        await pen.write(count=1)  # 2: 1 2 3 4
        await pen.write(retire_after=2, count=1)  # 3: 1 2 5
        await pen.write(retire_after=0)  # 4: empty
        await pen.write(count=1)  # 5: 6
        expected = {0: [], 1: [1, 2, 3], 2: [1, 2, 3, 4], 3: [1, 2, 5], 4: [], 5: [6], 99: [6]}
        for revision, live in expected.items():
            assert await pen.sequences(as_of=revision) == live
        assert await pen.sequences() == [6]
        assert await pen.sequences(retired=True) == [1, 2, 3, 4, 5, 6]
        assert await pen.sequences(retired=True, as_of=2) == [1, 2, 3, 4]
        assert await pen.sequences(first=2, last=4, as_of=2) == [2, 3, 4]

    async def test_no_read_stops_short(self, store: Store) -> None:
        pen = Pen(store)
        many = 25_000
        rows = [message(n, host_id=f"h{n}", pinned=n % 2 == 0) for n in range(1, many + 1)]
        await pen.write(
            messages=rows, summaries=[summary(f"s{n:05}", n, n) for n in range(1, 3001)]
        )
        assert await store.messages(SCOPE) == rows
        assert len(await store.messages(SCOPE, as_of=1)) == many
        assert (
            len(await store.messages_by_host_id(SCOPE, [f"h{n}" for n in range(1, many + 1)]))
            == many
        )
        assert len(await store.summaries(SCOPE)) == 3000
        assert len(await store.pinned_atoms(SCOPE, 2001)) == 1000
        await pen.write(retire_after=0)
        changes = await store.changes(SCOPE, 1)
        assert changes is not None
        assert len(changes.messages) == many

    async def test_messages_by_host_id(self, store: Store) -> None:
        pen = Pen(store)
        odd = 'quo"te\\ é\U0001f600'
        await pen.write(
            messages=[
                message(1, host_id="a"),
                message(2, host_id=odd),
                message(3),
                message(4, host_id="d"),
            ]
        )
        await pen.write(retire_after=3)
        assert sequences(await store.messages_by_host_id(SCOPE, [odd, "a", "d", "zz", ""])) == [
            1,
            2,
        ]
        assert await store.messages_by_host_id(SCOPE, []) == []

    async def test_where_a_running_sum_is_reached(self, store: Store) -> None:
        pen = Pen(store)
        starts = [0, None, 20, 30, None, 30, 70]
        rows = [message(n, step=n, start=start) for n, start in enumerate(starts, 1)]
        await pen.write(messages=rows)
        for start, expected in {-5: 1, 0: 1, 1: 3, 20: 3, 21: 4, 30: 4, 31: 7, 70: 7}.items():
            found = await store.atom_from(SCOPE, start)
            assert found == rows[expected - 1]
        assert await store.atom_from(SCOPE, 71) is None
        await pen.write(retire_after=5)
        assert await store.atom_from(SCOPE, 31) is None

    async def test_the_atom_of_a_message(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(messages=atoms())
        expected = {
            1: [1, 2, 4],
            2: [1, 2, 4],
            3: [3],
            4: [1, 2, 4],
            5: [5],
            6: [],
            7: [7, 9, 10],
            8: [8],
            9: [7, 9, 10],
            10: [7, 9, 10],
            11: [11],
            12: [],
        }
        for sequence, members in expected.items():
            assert sequences(await store.atom_of(SCOPE, sequence)) == members
        await pen.write(retire_after=9)
        assert sequences(await store.atom_of(SCOPE, 7)) == [7, 9]
        assert await store.atom_of(SCOPE, 10) == []
        await pen.write(retire_after=3)
        assert sequences(await store.atom_of(SCOPE, 1)) == [1, 2]

    async def test_late_results_by_the_atoms_that_they_came_for(self, store: Store) -> None:
        pen = Pen(store)
        late = [(4, 2), (5, 1), (7, 2), (9, 6)]
        rows = [message(n, step=n, late_of=dict(late).get(n)) for n in range(1, 10)]
        await pen.write(messages=rows)
        for first, last, expected in (
            (1, 9, [4, 5, 7, 9]),
            (2, 2, [4, 7]),
            (2, 6, [4, 7, 9]),
            (3, 5, []),
            (7, 99, []),
        ):
            assert sequences(await store.late_results(SCOPE, first, last)) == expected
        await pen.write(retire_after=6)
        assert sequences(await store.late_results(SCOPE, 1, 9)) == [4, 5]

    async def test_pinned_atoms(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(messages=atoms())
        for before, expected in {
            1: [],
            2: [[1, 2, 4]],
            5: [[1, 2, 4]],
            6: [[1, 2, 4], [5]],
            7: [[1, 2, 4], [5]],
            8: [[1, 2, 4], [5], [7, 9, 10]],
            99: [[1, 2, 4], [5], [7, 9, 10]],
        }.items():
            assert [sequences(atom) for atom in await store.pinned_atoms(SCOPE, before)] == expected
        await pen.write(retire_after=8)
        assert [sequences(atom) for atom in await store.pinned_atoms(SCOPE, 99)] == [[1, 2, 4], [5]]
        await pen.write(retire_after=3)
        assert await store.pinned_atoms(SCOPE, 99) == []

    async def test_summaries_in_order_and_as_of_a_revision(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(count=8, summaries=[summary("c", 5, 6), summary("b", 1, 4)])
        await pen.write(
            retire_summaries=["b", "c"],
            summaries=[summary("top", 1, 6, 2, depth=1, children=("b", "c"))],
        )
        await pen.write(retire_summaries=["top"])

        async def ids(**read: int | bool) -> list[str]:
            return [row.id for row in await store.summaries(SCOPE, **read)]  # type: ignore[arg-type]

        assert await ids() == []
        assert await ids(retired=True) == ["b", "top", "c"]
        assert await ids(retired=True, as_of=1) == ["b", "c"]
        assert [await ids(as_of=revision) for revision in range(5)] == [
            [],
            ["b", "c"],
            ["top"],
            [],
            [],
        ]

    async def test_what_changed_since_a_revision(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(count=3, summaries=[summary("a", 1, 2)])
        await pen.write(count=2)
        await pen.write(
            retire_after=2, count=1, retire_summaries=["a"], summaries=[summary("b", 1, 1, 3)]
        )
        await pen.write()
        expected = {
            0: ([1, 2, 3, 4, 5, 6], ["b", "a"]),
            1: ([3, 4, 5, 6], ["b", "a"]),
            2: ([3, 4, 5, 6], ["b", "a"]),
            3: ([], []),
            4: ([], []),
            9: ([], []),
        }
        everything = {row.sequence: row for row in await store.messages(SCOPE, retired=True)}
        for since, (rows, ids) in expected.items():
            changes = await store.changes(SCOPE, since)
            assert changes is not None
            assert changes.head == pen.head
            assert list(changes.messages) == [everything[sequence] for sequence in rows]
            assert sorted(row.id for row in changes.summaries) == sorted(ids)
        assert await store.changes(SCOPE._replace(session="none"), 0) is None

    async def test_sessions_that_share_names_share_nothing(self, store: Store) -> None:
        scopes = [Scope(t, a, s) for t in ("t1", "t2") for a in ("a1", "a2") for s in ("s1", "s2")]
        pens = {scope: Pen(store, scope, session_key="key") for scope in scopes}
        for n, (scope, pen) in enumerate(pens.items(), 1):
            own = [
                message(k, body=f"{scope} {k}".encode(), host_id=f"h{k}", pinned=True)
                for k in range(1, n + 1)
            ]
            reply = StoredReply("r1", b"", str(scope).encode())
            await pen.write(
                messages=own,
                summaries=[summary("sum", 1, n)],
                reply=reply,
                bind_key=True,
                debt=debt(scope),
            )
        for n, scope in enumerate(scopes, 1):
            rows = await store.messages(scope)
            assert [row.body for row in rows] == [f"{scope} {k}".encode() for k in range(1, n + 1)]
            assert await store.messages_by_host_id(scope, ["h1", "h8"]) == [rows[0], *rows[7:8]]
            assert await store.atom_from(scope, 0) == rows[0]
            assert await store.atom_of(scope, n) == [rows[-1]]
            assert await store.pinned_atoms(scope, 99) == [[row] for row in rows]
            assert [row.last_sequence for row in await store.summaries(scope)] == [n]
            assert await store.reply(scope, "r1") == StoredReply("r1", b"", str(scope).encode())
            assert [owed.scope for owed in await store.debts(scope)] == [scope]
            assert await store.current_session(scope.tenant, scope.agent, "key") == "s2"
            assert {
                head.scope.tenant for head in await store.list_sessions(scope.tenant, limit=99)
            } == {scope.tenant}
        await pens[scopes[0]].write(retire_after=0)
        await store.delete(scopes[1], expected_revision=None, cascade=True)
        assert (await store.counts("t2"))["messages"] == 5 + 6 + 7 + 8
        for n, scope in enumerate(scopes[2:], 3):
            assert len(await store.messages(scope)) == n

    async def test_a_key_names_its_current_session(self, store: Store) -> None:
        first = Pen(store, SCOPE, session_key="key")
        second = Pen(store, SCOPE._replace(session="s2"), session_key="key")
        assert await store.current_session("acme", "main", "key") is None
        await first.write(bind_key=True)
        assert await store.current_session("acme", "main", "key") == "s1"
        await second.write()
        assert await store.current_session("acme", "main", "key") == "s1"
        await second.write(bind_key=True)
        assert await store.current_session("acme", "main", "key") == "s2"
        await first.write(bind_key=True)
        assert await store.current_session("acme", "main", "key") == "s1"
        assert await store.current_session("acme", "other", "key") is None
        assert await store.current_session("other", "main", "key") is None

    async def test_counts(self, store: Store) -> None:
        await Pen(store).write(count=3, summaries=[summary("a", 1, 2)], debt=debt(SCOPE))
        pen = Pen(store, Scope("other", "main", "s1"))
        await pen.write(count=2)
        await pen.write(retire_after=1)
        await store.memory.add(found(pen, fact("a", scope=pen.scope), fact("b", scope=pen.scope)))
        mine = {"sessions": 1, "messages": 3, "summaries": 1, "debts": 1, "agent_facts": 0}
        theirs = {"sessions": 1, "messages": 2, "summaries": 0, "debts": 0, "agent_facts": 2}
        assert await store.counts("acme") == mine
        assert await store.counts("other") == theirs
        assert await store.counts() == {kind: mine[kind] + theirs[kind] for kind in mine}
        assert set((await store.counts("none")).values()) == {0}

    @pytest.mark.parametrize("size", [0, 1, 4096, 3_000_000])
    async def test_bodies_come_back_byte_for_byte(self, store: Store, size: int) -> None:
        body = bytes(range(256)) * (size // 256 + 1)
        row = replace(message(1), body=body[:size])
        await Pen(store).write(messages=[row])
        assert await store.messages(SCOPE) == [row]

    async def test_a_body_of_the_same_hash_takes_the_place_of_another(self, store: Store) -> None:
        pen = Pen(store)
        rows = [replace(message(n), content_hash=b"hash %d" % n) for n in (1, 2, 3)]
        await pen.write(messages=rows)
        await Pen(store, SCOPE._replace(session="other")).write(count=1)
        wanted = [
            (1, b"hash 1", b"mended"), (2, b"another", b"not this"), (3, b"hash 3", b"as well"),
            (4, b"hash 4", b""),
        ]  # fmt: skip
        assert await store.mend(SCOPE, wanted) == 2
        assert await store.mend(SCOPE, wanted) == 0
        assert await store.mend(SCOPE._replace(session="none"), wanted) == 0
        first, second, third = await store.messages(SCOPE)
        assert (first.body, third.body) == (b"mended", b"as well")
        assert second.body != b"not this"
        assert await store.head(SCOPE) == pen.head

    async def test_a_text_of_the_same_hash_takes_the_place_of_another(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(count=4)
        rows = [
            replace(summary(id, n, n), content_hash=b"hash " + id.encode(), children=("x",))
            for n, id in enumerate("abcd", 1)
        ]
        await pen.write(summaries=rows)
        a, b, c, d = rows
        wanted = [
            replace(a, text="mended"),
            replace(b, text="not this", content_hash=b"another"),
            replace(c, children=("y", "z"), tokens=99),
            replace(d, id="e", text="nor this"),
        ]
        assert await store.mend_summaries(SCOPE, wanted) == 2
        assert await store.mend_summaries(SCOPE, wanted) == 0
        assert await store.mend_summaries(SCOPE, []) == 0
        assert await store.mend_summaries(SCOPE._replace(session="none"), wanted) == 0
        mended = [replace(a, text="mended"), b, replace(c, children=("y", "z")), d]
        assert await store.summaries(SCOPE) == mended
        assert await store.head(SCOPE) == pen.head

    async def test_what_a_session_takes(self, store: Store) -> None:
        assert await store.size(SCOPE) == 0
        pen = Pen(store)
        body, text = b"x" * 5_000, "ü" * 700
        await pen.write(
            messages=[replace(message(1), body=body), replace(message(2), body=body)],
            summaries=[replace(summary("a", 1, 2), text=text)],
            reply=StoredReply("r", b"d" * 16, b"y" * 300),
        )
        await Pen(store, SCOPE._replace(session="other")).write(count=3)
        first = await store.size(SCOPE)
        assert 11_700 <= first < 12_700
        await keep(store, pen, {"chunk": "ü" * 400})
        first += 800
        await pen.write(retire_after=0)
        assert await store.size(SCOPE) == first, "what left the view takes room all the same"
