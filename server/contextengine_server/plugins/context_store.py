"""Where plugins for PyClaw keep chunks of context: a file of their own.

    from contextengine_server.plugins.context_store import ContextStore

A plugin that imports it from `pyclaw.memory.context_store` gets this one where PyClaw is not
installed. A session's messages and summaries are kept by the server, whatever a plugin keeps here.
`Sessions.Delete` erases a session's chunks in every store of the process; by age they go by an
operator's command alone (`contextengine plugins prune`).
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from contextengine_server.engines.hosted.kept import KEEPERS

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


def is_store(path: Path) -> bool:
    """Whether a file is a store of chunks."""
    if not path.is_file():
        return False
    file = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        return bool(file.execute("SELECT 1 FROM sqlite_master WHERE name = 'chunk'").fetchone())
    except sqlite3.DatabaseError:
        return False
    finally:
        file.close()


class ContextStore:
    """Chunks of text by session and id, in an SQLite file. Times are seconds since 1970 UTC."""

    def __init__(self, path: Path | str, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = Path(path), clock
        self._lock = threading.Lock()
        self._file: sqlite3.Connection | None = None
        KEEPERS.add(self)

    def __repr__(self) -> str:
        return f"ContextStore({str(self._path)!r})"

    async def initialize(self) -> None:
        """Opens the file, and makes it where there is none. May be called again."""
        self._open()

    def _open(self) -> None:
        with self._lock:
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                # Sessions have threads of their own; the lock lets one in at a time.
                self._file = sqlite3.connect(self._path, check_same_thread=False)
                self._file.execute("PRAGMA secure_delete = ON")
                self._file.execute(_SCHEMA)
                self._file.commit()

    async def save_chunk(self, session_id: str, chunk_id: str, content: str) -> None:
        """Keeps a chunk; one of the same id is another text from then on."""
        await self.save_chunks_batch(
            [{"session_id": session_id, "chunk_id": chunk_id, "content": content}]
        )

    async def save_chunks_batch(self, chunks: Iterable[Mapping[str, str]]) -> None:
        """The same of several, all or none."""
        now = self._clock()
        rows = [(one["session_id"], one["chunk_id"], one["content"], now, now) for one in chunks]
        await self.initialize()
        with self._lock, self._opened as file:
            file.executemany(_SAVE, rows)

    async def get_chunks(
        self, session_id: str, include_compacted: bool = False
    ) -> list[dict[str, Any]]:
        """A session's chunks in the order in which they came."""
        return await self._read(
            "SELECT chunk_id, content, compacted, created_at, updated_at FROM chunk"
            " WHERE session_id = ? AND (compacted = 0 OR ?) ORDER BY rowid",
            session_id,
            include_compacted,
        )

    async def mark_compacted(self, session_id: str, chunk_ids: Iterable[str]) -> None:
        """These chunks are in others by now."""
        rows = [(self._clock(), session_id, chunk_id) for chunk_id in chunk_ids]
        await self.initialize()
        with self._lock, self._opened as file:
            file.executemany(
                "UPDATE chunk SET compacted = 1, updated_at = ?"
                " WHERE session_id = ? AND chunk_id = ?",
                rows,
            )

    async def delete_session(self, session_id: str) -> None:
        """Erases a session's chunks."""
        self._open()
        with self._lock, self._opened as file:
            file.execute("DELETE FROM chunk WHERE session_id = ?", (session_id,))

    def erase(self, session_id: str) -> None:
        """See SessionKeeper."""
        if self._path.is_file():
            self._open()
            with self._lock, self._opened as file:
                file.execute("DELETE FROM chunk WHERE session_id = ?", (session_id,))

    async def prune_old_sessions(self, max_age_days: float) -> int:
        """Erases the sessions that nothing was written of for so long; how many there were."""
        await self.initialize()
        before = self._clock() - max_age_days * DAY_S
        with self._lock, self._opened as file:
            old = file.execute(
                "SELECT session_id FROM chunk GROUP BY session_id HAVING max(updated_at) < ?",
                (before,),
            ).fetchall()
            file.executemany("DELETE FROM chunk WHERE session_id = ?", old)
        return len(old)

    async def get_stats(self) -> dict[str, int]:
        """How much is kept."""
        [row] = await self._read(
            "SELECT count(DISTINCT session_id) AS sessions, count(*) AS chunks,"
            " coalesce(sum(compacted), 0) AS compacted,"
            " coalesce(sum(length(CAST(content AS BLOB))), 0) AS bytes FROM chunk"
        )
        return row

    async def close(self) -> None:
        """Closes the file; what is asked next opens it again."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    async def _read(self, query: str, *values: object) -> list[dict[str, Any]]:
        await self.initialize()
        with self._lock:
            found = self._opened.execute(query, values)
            names = [column[0] for column in found.description]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    @property
    def _opened(self) -> sqlite3.Connection:
        assert self._file is not None, "initialize() opens it"
        return self._file
