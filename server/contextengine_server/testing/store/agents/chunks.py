"""What plugins keep beside messages: it stays on its shelf, goes with its session, and else by an
operator alone."""

from __future__ import annotations

from collections.abc import Mapping

from contextengine_server.context.scope import Scope
from contextengine_server.store.chunks import Chunk, ChunkCounts, ChunkShelf
from contextengine_server.store.protocols import Store

from ..case import Reopen, StoreCase
from ..rows import SCOPE, Pen

SHELF = ChunkShelf(SCOPE, "plugin/context.db", "acme:main:s1")


async def keep(
    store: Store, pen: Pen, texts: Mapping[str, str], now_ms: int = 1_000, **shelf: str
) -> ChunkShelf:
    """Keeps texts on a shelf of a session."""
    place = shelf.get("place", SHELF.place), shelf.get("name", SHELF.name)
    there = ChunkShelf(pen.scope, *place)
    kept = await store.chunks.save(pen.scope, pen.head.incarnation, [(there, texts)], now_ms)
    assert kept
    return there


async def session(store: Store, scope: Scope = SCOPE, **more: str) -> Pen:
    """A session with a message."""
    pen = Pen(store, scope, **more)
    await pen.write(count=1)
    return pen


class ChunkCases(StoreCase):
    """What plugins keep beside messages: it stays on its shelf, goes with its session, and else by
    an operator alone."""

    async def test_chunks_come_back_in_their_order(self, store: Store, reopen: Reopen) -> None:
        pen = await session(store)
        await keep(store, pen, {"b": "one", "a": "二 two"})
        await keep(store, pen, {"c": ""}, 2_000)
        again = await reopen()
        assert await again.chunks.on(SHELF, compacted=False) == [
            Chunk("b", "one", False, 1, 1_000, 1_000),
            Chunk("a", "二 two", False, 2, 1_000, 1_000),
            Chunk("c", "", False, 3, 2_000, 2_000),
        ]

    async def test_one_that_is_there_is_written_over(self, store: Store) -> None:
        """It stays where it stood, and compacted where it was."""
        pen = await session(store)
        await keep(store, pen, {"a": "old", "b": "x"})
        await store.chunks.mark(SHELF, ["a"], 1_500)
        await keep(store, pen, {"a": "new", "c": "y"}, 2_000)
        rows = await store.chunks.on(SHELF, compacted=True)
        assert [one.id for one in rows] == ["a", "b", "c"]
        assert rows[0] == Chunk("a", "new", True, 1, 1_000, 2_000)

    async def test_what_is_compacted_comes_when_it_is_asked_for(self, store: Store) -> None:
        await keep(store, await session(store), {"a": "1", "b": "2", "c": "3"})
        await store.chunks.mark(SHELF, ["c", "none", "a"], 2_000)
        assert [one.id for one in await store.chunks.on(SHELF, compacted=False)] == ["b"]
        every = await store.chunks.on(SHELF, compacted=True)
        assert [(one.id, one.compacted, one.updated_ms) for one in every] == [
            ("a", True, 2_000),
            ("b", False, 1_000),
            ("c", True, 2_000),
        ]

    async def test_shelves_are_walled_off(self, store: Store) -> None:
        scopes = (SCOPE, SCOPE._replace(session="s2"), Scope("other", "main", "s1"))
        pens = [await session(store, scope) for scope in scopes]
        shelves = [await keep(store, pen, {"same": f"of {pen.scope}"}) for pen in pens]
        shelves.append(await keep(store, pens[0], {"same": "elsewhere"}, place="plugin/b.db"))
        shelves.append(await keep(store, pens[0], {"same": "archive"}, name="archive"))
        for shelf, text in zip(
            shelves, [*(f"of {scope}" for scope in scopes), "elsewhere", "archive"], strict=True
        ):
            [one] = await store.chunks.on(shelf, compacted=True)
            assert one.content == text
        await store.chunks.mark(shelves[0], ["same"], 2_000)
        await store.chunks.clear(shelves[1])
        left = [await store.chunks.on(shelf, compacted=False) for shelf in shelves]
        assert list(map(len, left)) == [0, 0, 1, 1, 1]
        assert await store.chunks.counts(SCOPE, SHELF.place) == ChunkCounts(
            2, 2, 1, len(f"of {SCOPE}") + len("archive")
        )

    async def test_nothing_is_kept_of_what_is_gone(self, store: Store) -> None:
        pen = await session(store, incarnation="first")
        texts = [(SHELF, {"a": "x"})]
        assert not await store.chunks.save(SCOPE, "another life", texts, 1)
        assert not await store.chunks.save(SCOPE._replace(session="none"), "first", texts, 1)
        await keep(store, pen, {"a": "secret"})
        await store.delete(SCOPE, expected_revision=None, cascade=False)
        assert await store.chunks.totals() == ChunkCounts()
        again = await session(store, incarnation="second")
        assert not await store.chunks.save(SCOPE, "first", texts, 1)
        assert await store.chunks.on(SHELF, compacted=True) == []
        await keep(store, again, {"a": "x"})

    async def test_only_sessions_that_nothing_was_written_of_are_pruned(self, store: Store) -> None:
        """Of 10 s ago or later: neither a chunk nor anything else."""
        ages = {"old": (1, 1), "said since": (20, 1), "kept since": (1, 20), "just then": (10, 1)}
        for name, (said, kept) in ages.items():
            pen = Pen(store, SCOPE._replace(session=name))
            await pen.write(count=1, head={"updated_ms": said * 1_000})
            await keep(store, pen, {"a": "12", "b": "3"}, kept * 1_000)
        foreign = Pen(store, Scope("other", "main", "old"))
        await foreign.write(count=1, head={"updated_ms": 1_000})
        await keep(store, foreign, {"a": "1"}, 1_000)
        assert await store.chunks.totals("acme") == ChunkCounts(4, 8, 0, 12)

        assert await store.chunks.prune(10_000, "acme") == ChunkCounts(1, 2, 0, 3)
        assert await store.chunks.prune(10_000, "acme") == ChunkCounts()
        assert await store.chunks.totals() == ChunkCounts(4, 7, 0, 10)
        assert await store.chunks.prune(10_000) == ChunkCounts(1, 1, 0, 1)
        assert await store.head(foreign.scope) is not None, "the session stays"
        assert await store.chunks.prune(30_000) == ChunkCounts(3, 6, 0, 9)
