"""Chunks of text that plugins keep beside the messages of sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from contextengine_server.context.scope import Scope
from contextengine_server.store.chunks import Chunk, ChunkCounts, ChunkShelf


class Chunks(Protocol):
    """They go with their session when that is deleted. Nothing else erases them but who kept them,
    and `prune`, which serves an operator."""

    async def save(
        self,
        scope: Scope,
        incarnation: str,
        texts: Sequence[tuple[ChunkShelf, Mapping[str, str]]],
        now_ms: int,
    ) -> bool:
        """Keeps the texts of shelves of one session, by the ids of their chunks, all or none. One
        whose id is there has the new text from then on, and stays where it stood. False, and
        nothing is kept, where the session is gone or lives another life."""

    async def on(self, shelf: ChunkShelf, *, compacted: bool) -> list[Chunk]:
        """The chunks of a shelf in the order in which they came; `compacted`: those as well."""

    async def mark(self, shelf: ChunkShelf, ids: Sequence[str], now_ms: int) -> None:
        """These are in others by now. An id that is none is let be."""

    async def clear(self, shelf: ChunkShelf) -> None:
        """Erases all chunks of a shelf."""

    async def counts(self, scope: Scope, place: str) -> ChunkCounts:
        """How much of a session one of a plugin's stores keeps; the shelves are its sessions."""

    async def totals(self, tenant: str = "") -> ChunkCounts:
        """How much is kept, of a tenant or (empty) over all."""

    async def prune(self, before_ms: int, tenant: str = "") -> ChunkCounts:
        """Erases the chunks of every session, of a tenant or (empty) of all, that nothing was
        written of since a moment, neither chunks nor anything else. Answers how much that was."""
