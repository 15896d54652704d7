"""Chunks of plugins, in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.chunks import Chunk, ChunkCounts, ChunkShelf

from .tables import Tables


class MemoryChunks:
    """`Chunks` over dictionaries. `tables` answers the tables, or raises StoreUnavailable."""

    def __init__(self, tables: Callable[[], Tables]) -> None:
        self._tables = tables

    async def save(
        self,
        scope: Scope,
        incarnation: str,
        texts: Sequence[tuple[ChunkShelf, Mapping[str, str]]],
        now_ms: int,
    ) -> bool:
        """Keeps texts; False where the session is gone or lives another life."""
        tables = self._tables()
        head = tables.head(scope)
        if head is None or head.incarnation != incarnation:
            return False
        kept = tables.chunks.setdefault(scope, {})
        number = max((one.number for shelf in kept.values() for one in shelf.values()), default=0)
        for shelf, contents in texts:
            there = kept.setdefault(shelf, {})
            for id, content in contents.items():
                before = there.get(id)
                if before is None:
                    number += 1
                    there[id] = Chunk(id, content, False, number, now_ms, now_ms)
                else:
                    there[id] = replace(before, content=content, updated_ms=now_ms)
        return True

    async def on(self, shelf: ChunkShelf, *, compacted: bool) -> list[Chunk]:
        """The chunks of a shelf in the order in which they came."""
        return [one for one in self._on(shelf).values() if compacted or not one.compacted]

    async def mark(self, shelf: ChunkShelf, ids: Sequence[str], now_ms: int) -> None:
        """These are in others by now."""
        there = self._on(shelf)
        for id in ids:
            if id in there:
                there[id] = replace(there[id], compacted=True, updated_ms=now_ms)

    async def clear(self, shelf: ChunkShelf) -> None:
        """Erases all chunks of a shelf."""
        self._tables().chunks.get(shelf.scope, {}).pop(shelf, None)

    async def counts(self, scope: Scope, place: str) -> ChunkCounts:
        """How much of a session one of a plugin's stores keeps."""
        kept = self._tables().chunks.get(scope, {})
        shelves = [there for shelf, there in kept.items() if shelf.place == place and there]
        return _counted(len(shelves), (one for there in shelves for one in there.values()))

    async def totals(self, tenant: str = "") -> ChunkCounts:
        """How much is kept, of a tenant or over all."""
        return self._summed(self._of(tenant))

    async def prune(self, before_ms: int, tenant: str = "") -> ChunkCounts:
        """Erases the chunks of sessions that nothing was written of since a moment."""
        tables = self._tables()
        old = [
            scope
            for scope in self._of(tenant)
            if tables.sessions[scope].head.updated_ms < before_ms
            and all(one.updated_ms < before_ms for one in self._all(scope))
        ]
        gone = self._summed(old)
        for scope in old:
            del tables.chunks[scope]
        return gone

    def _on(self, shelf: ChunkShelf) -> dict[str, Chunk]:
        return self._tables().chunks.get(shelf.scope, {}).get(shelf, {})

    def _of(self, tenant: str) -> list[Scope]:
        chunks = self._tables().chunks
        return [
            scope
            for scope, shelves in chunks.items()
            if tenant in ("", scope.tenant) and any(shelves.values())
        ]

    def _all(self, scope: Scope) -> list[Chunk]:
        return [one for there in self._tables().chunks[scope].values() for one in there.values()]

    def _summed(self, scopes: Sequence[Scope]) -> ChunkCounts:
        return _counted(len(scopes), (one for scope in scopes for one in self._all(scope)))


def _counted(sessions: int, chunks: Iterable[Chunk]) -> ChunkCounts:
    every = list(chunks)
    return ChunkCounts(
        sessions,
        len(every),
        sum(one.compacted for one in every),
        sum(len(one.content.encode()) for one in every),
    )
