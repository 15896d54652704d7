"""An SQLite file as what is copied from, or into."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from contextengine_server.store.errors import StoreRefused
from contextengine_server.store.transfer import tables
from contextengine_server.store.transfer.side import Key, Lives
from contextengine_server.store.transfer.tables import HEADS, OF_SESSIONS, WHOLE, Row

from ..database import FileLock, connect, connect_writer, require_known

_PAGE = 500
_NOTES = "store_copy"
_OF_KEY = "tenant = ? AND agent = ? AND session = ?"


@asynccontextmanager
async def source(path: Path) -> AsyncIterator[SqliteSide]:
    """The file as it is now, which a server may go on writing to. Raises StoreRefused."""
    require_known(path)
    async with _side(connect(path, read_only=True), path) as side:
        side.db.execute("BEGIN")
        yield side


@asynccontextmanager
async def target(path: Path) -> AsyncIterator[SqliteSide]:
    """The file, which has the present schema and nobody else opens. Raises StoreRefused."""
    lock = FileLock(path)
    try:
        async with _side(connect_writer(path), path) as side:
            side.db.execute(
                f"CREATE TABLE IF NOT EXISTS {_NOTES} (part TEXT PRIMARY KEY, mark TEXT NOT NULL)"
            )
            yield side
    finally:
        lock.release()


@asynccontextmanager
async def _side(db: sqlite3.Connection, path: Path) -> AsyncIterator[SqliteSide]:
    db.text_factory = str  # what is no text is told, and not replaced
    try:
        yield SqliteSide(db)
    except sqlite3.Error as error:
        raise StoreRefused(f"{path} cannot be copied: {error}") from error
    finally:
        db.close()


class SqliteSide:
    """See `store.transfer.side`. It waits for the disk: nothing else runs beside a copy."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db

    async def heads(self) -> AsyncIterator[list[Row]]:
        """See CopySource."""
        condition = f"WHERE revision > 0 ORDER BY {', '.join(tables.order(HEADS))}"
        async for page in self._pages(HEADS, condition):
            yield page

    async def head(self, key: Key) -> Row | None:
        """See CopySource."""
        found = self.db.execute(
            f"SELECT {_names(HEADS)} FROM {HEADS} WHERE {_OF_KEY} AND revision > 0", key
        ).fetchall()
        return _flagged(HEADS, found)[0] if found else None

    async def rows(self, table: str, lives: Lives | None) -> AsyncIterator[list[Row]]:
        """See CopySource."""
        order = f"ORDER BY {', '.join(tables.order(table))}"
        if lives is None:
            async for page in self._pages(table, order):
                yield page
            return
        for key in lives:
            async for page in self._pages(table, f"WHERE {_OF_KEY} {order}", key):
                yield page

    async def _pages(
        self, table: str, condition: str, given: Sequence[str] = ()
    ) -> AsyncIterator[list[Row]]:
        cursor = self.db.execute(f"SELECT {_names(table)} FROM {table} {condition}", given)
        while page := cursor.fetchmany(_PAGE):
            yield _flagged(table, page)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """See CopyTarget."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")

    async def erase(self, table: str, lives: Lives | None) -> None:
        """See CopyTarget."""
        if lives is None:
            self.db.execute(f"DELETE FROM {table}")
        else:
            self.db.executemany(f"DELETE FROM {table} WHERE {_OF_KEY}", list(lives))

    async def insert(self, table: str, rows: Sequence[Row], lives: Lives) -> None:
        """See CopyTarget."""
        marks = ", ".join("?" * len(tables.columns(table)))
        self.db.executemany(f"INSERT INTO {table} ({_names(table)}) VALUES ({marks})", rows)

    async def empty(self) -> None:
        """See CopyTarget."""
        self.db.execute("UPDATE search_cursors SET doomed = 1")
        for table in (*OF_SESSIONS, *WHOLE, _NOTES):
            self.db.execute(f"DELETE FROM {table}")

    async def forget(self, lives: Lives) -> None:
        """See CopyTarget. The next server erases what is doomed."""
        given = [(*key, life) for key, life in lives.items()]
        condition = f"{_OF_KEY} AND incarnation = ?"
        self.db.executemany(f"UPDATE search_cursors SET doomed = 1 WHERE {condition}", given)

    async def mark(self, part: str) -> str:
        """See CopyTarget."""
        row = self.db.execute(f"SELECT mark FROM {_NOTES} WHERE part = ?", (part,)).fetchone()
        return "" if row is None else str(row[0])

    async def note(self, part: str, mark: str) -> None:
        """See CopyTarget."""
        self.db.execute(f"DELETE FROM {_NOTES} WHERE part = ?", (part,))
        if mark:
            self.db.execute(f"INSERT INTO {_NOTES} (part, mark) VALUES (?, ?)", (part, mark))


def _names(table: str) -> str:
    return ", ".join(f'"{name}"' for name in tables.columns(table))


def _flagged(table: str, page: Iterable[Row]) -> list[Row]:
    """Rows with their flags as such: to SQLite they are numbers."""
    flags = tables.flags(table)
    if not flags:
        return list(page)
    made = []
    for row in page:
        values = list(row)
        for at in flags:
            values[at] = bool(values[at])
        made.append(tuple(values))
    return made
