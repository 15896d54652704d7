"""Chunks of plugins, in the PostgreSQL store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from contextengine_server.context.scope import Scope
from contextengine_server.store.chunks import Chunk, ChunkCounts, ChunkShelf
from contextengine_server.store.sql import columns

from .. import reads
from ..connections import Connections, Db
from ..keys import named
from ..statements import LOCK, PRUNE_CHUNKS, SQL
from ..transactions import Transact


class PostgresChunks:
    """`Chunks` in a table. `write` runs work in a transaction."""

    def __init__(self, connections: Connections, write: Transact) -> None:
        self._connections, self._write = connections, write

    async def save(
        self,
        scope: Scope,
        incarnation: str,
        texts: Sequence[tuple[ChunkShelf, Mapping[str, str]]],
        now_ms: int,
    ) -> bool:
        """Keeps texts; False where the session is gone or lives another life."""

        async def work(db: Db) -> bool:
            # Under this lock nobody else gives a chunk of the session its number.
            head = await reads.head(db, scope, LOCK)
            if head is None or head.incarnation != incarnation:
                return False
            number = await db.value(SQL.chunks.last_number, named(scope))
            for shelf, contents in texts:
                for id, content in contents.items():
                    number += 1
                    chunk = Chunk(id, content, False, number, now_ms, now_ms)
                    await db.met(SQL.chunks.put, columns.chunk_values(shelf, chunk))
            return True

        return await self._write(work)

    async def on(self, shelf: ChunkShelf, *, compacted: bool) -> list[Chunk]:
        """The chunks of a shelf in the order in which they came."""
        names = {**_named(shelf), "compacted": compacted}
        return columns.chunks(await self._connections.read(Db.rows, SQL.chunks.on, names))

    async def mark(self, shelf: ChunkShelf, ids: Sequence[str], now_ms: int) -> None:
        """These are in others by now."""
        rows = [{**_named(shelf), "id": id, "now": now_ms} for id in ids]

        async def work(db: Db) -> None:
            for row in rows:
                await db.met(SQL.chunks.mark, row)

        await self._write(work)

    async def clear(self, shelf: ChunkShelf) -> None:
        """Erases all chunks of a shelf."""
        await self._write(lambda db: db.met(SQL.chunks.clear, _named(shelf)))

    async def counts(self, scope: Scope, place: str) -> ChunkCounts:
        """How much of a session one of a plugin's stores keeps."""
        names = named(scope, place=place)
        return _counts(await self._connections.read(Db.rows, SQL.chunks.counts, names))

    async def totals(self, tenant: str = "") -> ChunkCounts:
        """How much is kept, of a tenant or over all."""

        async def read(db: Db) -> ChunkCounts:
            async with reads.snapshot(db):
                sessions = await db.value(SQL.chunks.sessions, {"tenant": tenant})
                row = await db.row(SQL.chunks.totals, {"tenant": tenant})
            assert row is not None
            return ChunkCounts(sessions, *row)

        return await self._connections.read(read)

    async def prune(self, before_ms: int, tenant: str = "") -> ChunkCounts:
        """Erases the chunks of sessions that nothing was written of since a moment."""
        names = {"tenant": tenant, "before": before_ms}
        return _counts(await self._write(lambda db: db.rows(PRUNE_CHUNKS, names)))


def _named(shelf: ChunkShelf) -> dict[str, object]:
    return named(shelf.scope, place=shelf.place, name=shelf.name)


def _counts(rows: Sequence[Iterable[int]]) -> ChunkCounts:
    [row] = rows
    return ChunkCounts(*row)
