"""How the search index is filled, and what a deletion leaves of it."""

from __future__ import annotations

import asyncio

from contextengine_server.context.scope import Scope
from contextengine_server.store.protocols import Store
from contextengine_server.store.search import (
    MAX_PARTS,
    MAX_PLACE,
    Advance,
    Cursor,
    Document,
    DocumentKind,
    Progress,
)

from .case import IndexCase
from .documents import fill, found, span, written
from .rows import SCOPE, Pen, summary


class IndexCases(IndexCase):
    """How the search index is filled, and what a deletion leaves of it."""

    async def test_a_cursor_moves_only_from_where_it_stands(self, store: Store) -> None:
        pen = await written(store, "one", "two")
        progress = await store.index.progress(SCOPE)
        assert progress == Progress(Cursor(2, 0, 0, 1), "first life", 1, 1, 2, 0)
        stale = Advance(
            SCOPE,
            "first life",
            Cursor(),
            Cursor(9),
            [Document(DocumentKind.MESSAGE, 9, 0, "stale")],
        )
        strange = Advance(
            SCOPE,
            "another life",
            Cursor(),
            Cursor(9),
            [Document(DocumentKind.MESSAGE, 9, 0, "stale")],
        )
        unknown = Advance(Scope("acme", "main", "none"), "x", Cursor(), Cursor(9), [])
        await store.index.advance([stale, strange, unknown])
        assert await store.index.progress(SCOPE) == progress
        assert await found(store, "stale") == []
        await pen.write(count=1)
        await fill(pen, "three")
        assert (await store.index.progress(SCOPE)) == Progress(
            Cursor(3, 0, 0, 2), "first life", 2, 1, 3, 0
        )
        assert await store.index.progress(Scope("acme", "main", "none")) is None

    async def test_sessions_that_the_index_is_behind_with(self, store: Store) -> None:
        assert await store.index.behind(9) == []
        one, two = Pen(store, Scope("a", "b", "1")), Pen(store, Scope("c", "d", "2"))
        await one.write(count=1)
        await two.write(count=1)
        assert sorted(await store.index.behind(9)) == [one.scope, two.scope]
        assert len(await store.index.behind(1)) == 1
        await fill(one, "text")
        assert await store.index.behind(9) == [two.scope]
        await one.write(count=1)
        assert sorted(await store.index.behind(9)) == [one.scope, two.scope]

    async def test_who_wrote_is_noted_once_it_is_durable(self, store: Store) -> None:
        noted: list[Scope] = []
        store.index.noted = noted.append
        pen = Pen(store)
        await pen.write(count=1)
        await pen.write()
        await pen.write(summaries=[summary("s", 1, 1, revision=3)])
        assert noted == [SCOPE, SCOPE]

    async def test_what_never_comes_back_has_no_text(self, store: Store) -> None:
        """A summary that another of its generation took the place of is not to be found again; one
        that a later generation took the place of comes back with an undo."""
        pen = Pen(store)
        await pen.write(count=2)
        await pen.write(
            summaries=[
                summary("a", 1, 1, revision=2, generation=1),
                summary("b", 2, 2, revision=2, generation=2),
            ]
        )
        await pen.write(
            summaries=[
                summary("c", 1, 1, revision=3, generation=1, remakes="a"),
                summary("d", 2, 2, revision=3, generation=3, remakes="b"),
            ]
        )
        said = ["", "what 2 to 2 said", "what 1 to 1 said", "what 2 to 2 said"]
        for skip in (0, 1):
            found = await store.index.summaries(SCOPE, skip)
            assert [(at, row.text) for at, row in found] == list(enumerate(said))[skip:]

    async def test_a_deletion_erases_what_was_indexed(self, store: Store) -> None:
        await written(store, *(f"secret number {n} " + "x" * 900 for n in range(60)))
        other = await written(store, "secret of another", scope=Scope("acme", "main", "s2"))
        await store.delete(SCOPE, expected_revision=None, cascade=False)
        assert await store.index.progress(SCOPE) is None
        assert await found(store, "secret") == []
        assert not await store.index.erase()
        again = Pen(store, incarnation="second life")
        await again.write(count=3)
        assert await found(store, "secret") == []
        await fill(again, "new", "rows", "only")
        assert await found(store, "secret", span(), span(other.scope)) == [1]
        assert await found(store, "rows") == [2]
        while await store.index.tidy():
            pass
        assert await found(store, "rows") == [2]

    async def test_what_is_renewed_begins_anew(self, store: Store) -> None:
        pen = await written(store, "one", "two")
        other = await written(store, "one of another", scope=Scope("acme", "main", "s2"))
        noted: list[Scope] = []
        store.index.noted = noted.append
        await store.index.renew(SCOPE)
        assert noted == [SCOPE]
        assert await store.index.progress(SCOPE) == Progress(Cursor(), "first life", 1, 1, 2, 0)
        assert await store.index.behind(9) == [SCOPE]
        assert await found(store, "one", span(), span(other.scope)) == [1]
        while await store.index.tidy():
            pass
        await fill(pen, "uno", "two")
        assert await found(store, "one") == []
        assert await found(store, "uno") == [1]
        assert await store.index.behind(9) == []

    async def test_what_lies_behind_the_last_place_is_left_out(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(count=1)
        documents = [
            Document(DocumentKind.MESSAGE, MAX_PLACE + 1, 0, "far"),
            Document(DocumentKind.MESSAGE, 1, MAX_PARTS, "far"),
        ]
        step = Advance(
            SCOPE,
            "first life",
            Cursor(),
            Cursor(1),
            [*documents, Document(DocumentKind.MESSAGE, 1, 0, "near")],
        )
        await store.index.advance([step])
        assert await found(store, "far") == []
        assert await found(store, "near") == [1]

    async def test_writing_a_lot_and_folding_it_loses_nothing(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(count=200)
        for n in range(40):
            await fill(pen, *(f"word{n} common item{n * 5 + k}" for k in range(5)))
            while await store.index.tidy():
                pass
        assert len(await found(store, "common")) == 200
        assert await found(store, "word17") == [90, 89, 88, 87, 86]
        assert await found(store, "item123") == [124]

    async def test_of_two_who_index_the_same_one_does(self, store: Store, other: Store) -> None:
        pen = Pen(store)
        await pen.write(count=1)
        step = Advance(
            SCOPE,
            pen.head.incarnation,
            Cursor(),
            Cursor(1, 0, 0, 1),
            [Document(DocumentKind.MESSAGE, 1, 0, "red")],
        )
        await asyncio.gather(store.index.advance([step]), other.index.advance([step]))
        for one in (store, other):
            assert await found(one, "red") == [1]
            assert await one.index.behind(9) == []
