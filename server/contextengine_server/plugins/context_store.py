"""Where plugins for PyClaw keep chunks of context.

    from contextengine_server.plugins.context_store import ContextStore

A plugin that imports it from `pyclaw.memory.context_store` gets this one where PyClaw is not
installed. While the server has a plugin at work for a session, its chunks are rows of the server's
store, which belong to that session and go with it. Anywhere else, in a script or a test of the
plugin's, they are in a file of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import structlog

from contextengine_server.engines.hosted.kept import AT_WORK, SessionChunks

from .chunk_file import ChunkFile

log = structlog.get_logger("contextengine.plugins")


class ContextStore:
    """Chunks of text by session and id. Times are seconds since 1970 UTC."""

    def __init__(self, path: Path | str, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = Path(path), clock
        self._file = ChunkFile(self._path, clock)

    def __deepcopy__(self, memo: dict[int, Any]) -> ContextStore:
        """One that a session's plugin has for itself: the chunks are the same."""
        return ContextStore(self._path, self._clock)

    async def initialize(self) -> None:
        """Makes a place for chunks where there is none. May be called again."""
        if AT_WORK.get() is None:
            self._file.open()

    async def save_chunk(self, session_id: str, chunk_id: str, content: str) -> None:
        """Keeps a chunk; one of the same id is another text from then on."""
        await self.save_chunks_batch(
            [{"session_id": session_id, "chunk_id": chunk_id, "content": content}]
        )

    async def save_chunks_batch(self, chunks: Iterable[Mapping[str, str]]) -> None:
        """The same of several, all or none."""
        texts = [(one["session_id"], {one["chunk_id"]: one["content"]}) for one in chunks]
        kept, place = self._kept
        await kept.save(place, texts)

    async def get_chunks(
        self, session_id: str, include_compacted: bool = False
    ) -> list[dict[str, Any]]:
        """A session's chunks in the order in which they came."""
        kept, place = self._kept
        return await kept.on(place, session_id, compacted=include_compacted)

    async def mark_compacted(self, session_id: str, chunk_ids: Iterable[str]) -> None:
        """These chunks are in others by now."""
        kept, place = self._kept
        await kept.mark(place, session_id, list(chunk_ids))

    async def delete_session(self, session_id: str) -> None:
        """Erases a session's chunks."""
        kept, place = self._kept
        await kept.clear(place, session_id)

    async def prune_old_sessions(self, max_age_days: float) -> int:
        """Erases the sessions that nothing was written of for so long; how many there were. In the
        server's store only an operator does that: there it erases nothing."""
        at_work = AT_WORK.get()
        if at_work is None:
            return self._file.prune(max_age_days)
        log.warning(
            "chunks_not_pruned", plugin=at_work.plugin, command="contextengine plugins prune"
        )
        return 0

    async def get_stats(self) -> dict[str, int]:
        """How much is kept: `sessions`, `chunks`, `compacted` and `bytes`. In the server's store,
        of the session at work."""
        kept, place = self._kept
        return await kept.counts(place)

    async def close(self) -> None:
        """Closes the file, if any; what is asked next opens it again."""
        self._file.close()

    @property
    def _kept(self) -> tuple[SessionChunks, str]:
        """Where chunks are kept now, and what this store is called there."""
        at_work = AT_WORK.get()
        if at_work is None:
            return self._file, ""
        return at_work.chunks, at_work.place_of(self._path)
