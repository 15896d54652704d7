"""Chunks of plugins, in the SQLite store."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from contextengine_server.context.scope import Scope
from contextengine_server.store.chunks import Chunk, ChunkCounts, ChunkShelf
from contextengine_server.store.sql import columns
from contextengine_server.store.sql.columns import named

from . import reads
from .index import Run, Write
from .statements import SQL


class SqliteChunks:
    """`Chunks` in a table. `read` and `write` run work on a connection of their kind."""

    def __init__(self, read: Run, write: Write) -> None:
        self._read, self._write = read, write

    async def save(
        self,
        scope: Scope,
        incarnation: str,
        texts: Sequence[tuple[ChunkShelf, Mapping[str, str]]],
        now_ms: int,
    ) -> bool:
        """Keeps texts; False where the session is gone or lives another life."""

        def work(db: sqlite3.Connection) -> bool:
            head = reads.head(db, scope)
            if head is None or head.incarnation != incarnation:
                return False
            [number] = db.execute(SQL.chunks.last_number, named(scope)).fetchone()
            for shelf, contents in texts:
                for id, content in contents.items():
                    number += 1
                    chunk = Chunk(id, content, False, number, now_ms, now_ms)
                    db.execute(SQL.chunks.put, columns.chunk_values(shelf, chunk))
            return True

        return await self._write(work, tenant=scope.tenant)

    async def on(self, shelf: ChunkShelf, *, compacted: bool) -> list[Chunk]:
        """The chunks of a shelf in the order in which they came."""
        names = {**_named(shelf), "compacted": compacted}
        return await self._read(lambda db: columns.chunks(db.execute(SQL.chunks.on, names)))

    async def mark(self, shelf: ChunkShelf, ids: Sequence[str], now_ms: int) -> None:
        """These are in others by now."""
        rows = [{**_named(shelf), "id": id, "now": now_ms} for id in ids]

        def work(db: sqlite3.Connection) -> None:
            for row in rows:
                db.execute(SQL.chunks.mark, row)

        await self._write(work, tenant=shelf.scope.tenant)

    async def clear(self, shelf: ChunkShelf) -> None:
        """Erases all chunks of a shelf."""

        def work(db: sqlite3.Connection) -> None:
            db.execute(SQL.chunks.clear, _named(shelf))

        await self._write(work, tenant=shelf.scope.tenant)

    async def counts(self, scope: Scope, place: str) -> ChunkCounts:
        """How much of a session one of a plugin's stores keeps."""
        names = named(scope, place=place)
        return await self._read(
            lambda db: ChunkCounts(*db.execute(SQL.chunks.counts, names).fetchone())
        )

    async def totals(self, tenant: str = "") -> ChunkCounts:
        """How much is kept, of a tenant or over all."""
        return await self._read(lambda db: _totals(db, tenant))

    async def prune(self, before_ms: int, tenant: str = "") -> ChunkCounts:
        """Erases the chunks of sessions that nothing was written of since a moment."""

        def work(db: sqlite3.Connection) -> ChunkCounts:
            before = _totals(db, tenant)
            db.execute(SQL.chunks.prune, {"tenant": tenant, "before": before_ms})
            after = _totals(db, tenant)
            return ChunkCounts(
                before.sessions - after.sessions,
                before.chunks - after.chunks,
                before.compacted - after.compacted,
                before.bytes - after.bytes,
            )

        return await self._write(work, tenant=tenant)


def _named(shelf: ChunkShelf) -> dict[str, object]:
    return named(shelf.scope, place=shelf.place, name=shelf.name)


def _totals(db: sqlite3.Connection, tenant: str) -> ChunkCounts:
    names = {"tenant": tenant}
    [sessions] = db.execute(SQL.chunks.sessions, names).fetchone()
    return ChunkCounts(sessions, *db.execute(SQL.chunks.totals, names).fetchone())
