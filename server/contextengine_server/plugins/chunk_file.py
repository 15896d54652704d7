"""Chunks of a plugin that no server has at work, in an SQLite file of their own."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

_SCHEMA = """
CREATE TABLE IF NOT EXISTS chunk (
    session_id TEXT NOT NULL,
    chunk_id TEXT NOT NULL,
    content TEXT NOT NULL,
    compacted INTEGER NOT NULL DEFAULT 0,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    PRIMARY KEY (session_id, chunk_id)
)
"""
_SAVE = """
INSERT INTO chunk (session_id, chunk_id, content, created_at, updated_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (session_id, chunk_id)
DO UPDATE SET content = excluded.content, updated_at = excluded.updated_at
"""
DAY_S = 86_400


class ChunkFile:
    """`SessionChunks` of a file: any sessions, by their names. `place` says nothing here."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self._path, self._clock = path, clock
        self._lock = threading.Lock()
        self._file: sqlite3.Connection | None = None

    def open(self) -> None:
        """Opens the file, and makes it where there is none. May be called again."""
        with self._lock:
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                # Whoever uses it may have threads; the lock lets one in at a time.
                self._file = sqlite3.connect(self._path, check_same_thread=False)
                self._file.execute("PRAGMA secure_delete = ON")
                self._file.execute(_SCHEMA)
                self._file.commit()

    async def save(self, place: str, texts: Sequence[tuple[str, Mapping[str, str]]]) -> None:
        """See SessionChunks."""
        now = self._clock()
        self._write(
            _SAVE,
            [
                (name, id, content, now, now)
                for name, contents in texts
                for id, content in contents.items()
            ],
        )

    async def on(self, place: str, name: str, *, compacted: bool) -> list[dict[str, Any]]:
        """See SessionChunks."""
        return self._read(
            "SELECT chunk_id, content, compacted, created_at, updated_at FROM chunk"
            " WHERE session_id = ? AND (compacted = 0 OR ?) ORDER BY rowid",
            name,
            compacted,
        )

    async def mark(self, place: str, name: str, ids: Sequence[str]) -> None:
        """See SessionChunks."""
        self._write(
            "UPDATE chunk SET compacted = 1, updated_at = ? WHERE session_id = ? AND chunk_id = ?",
            [(self._clock(), name, id) for id in ids],
        )

    async def clear(self, place: str, name: str) -> None:
        """See SessionChunks."""
        self._write("DELETE FROM chunk WHERE session_id = ?", [(name,)])

    async def counts(self, place: str) -> dict[str, int]:
        """See SessionChunks."""
        [row] = self._read(
            "SELECT count(DISTINCT session_id) AS sessions, count(*) AS chunks,"
            " coalesce(sum(compacted), 0) AS compacted,"
            " coalesce(sum(length(CAST(content AS BLOB))), 0) AS bytes FROM chunk"
        )
        return row

    def prune(self, max_age_days: float) -> int:
        """Erases the sessions that nothing was written of for so long; how many there were."""
        before = self._clock() - max_age_days * DAY_S
        old = self._read(
            "SELECT session_id FROM chunk GROUP BY session_id HAVING max(updated_at) < ?", before
        )
        self._write("DELETE FROM chunk WHERE session_id = ?", [(one["session_id"],) for one in old])
        return len(old)

    def close(self) -> None:
        """Closes the file; what is asked next opens it again."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _write(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        self.open()
        with self._lock, self._opened as file:
            file.executemany(statement, rows)

    def _read(self, query: str, *values: object) -> list[dict[str, Any]]:
        self.open()
        with self._lock:
            found = self._opened.execute(query, values)
            names = [column[0] for column in found.description]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    @property
    def _opened(self) -> sqlite3.Connection:
        assert self._file is not None, "`open` opens it"
        return self._file
