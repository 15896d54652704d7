"""What a hosted engine keeps beside a session's messages, in the server's store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import asdict

from contextengine_server.context.scope import Scope
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions
from contextengine_server.store.chunks import ChunkShelf
from contextengine_server.store.protocols import Chunks

T = TypeVar("T")


class StoredChunks(msgspec.Struct, frozen=True):
    """`SessionChunks` of one life of a session. Asked from another thread, it works on the loop
    that the store is used on."""

    stored: Chunks
    scope: Scope
    incarnation: str
    clock_ms: Callable[[], int]
    loop: asyncio.AbstractEventLoop

    async def save(self, place: str, texts: Sequence[tuple[str, Mapping[str, str]]]) -> None:
        """See SessionChunks. What is said of a session that was deleted meanwhile is not kept."""
        rows = [(self._shelf(place, name), contents) for name, contents in texts]
        await self._there(
            self.stored.save(self.scope, self.incarnation, rows, self.clock_ms()),
        )

    async def on(self, place: str, name: str, *, compacted: bool) -> list[dict[str, Any]]:
        """See SessionChunks."""
        found = await self._there(self.stored.on(self._shelf(place, name), compacted=compacted))
        return [
            {
                "chunk_id": one.id,
                "content": one.content,
                "compacted": int(one.compacted),
                "created_at": one.created_ms / 1000,
                "updated_at": one.updated_ms / 1000,
            }
            for one in found
        ]

    async def mark(self, place: str, name: str, ids: Sequence[str]) -> None:
        """See SessionChunks."""
        await self._there(self.stored.mark(self._shelf(place, name), ids, self.clock_ms()))

    async def clear(self, place: str, name: str) -> None:
        """See SessionChunks."""
        await self._there(self.stored.clear(self._shelf(place, name)))

    async def counts(self, place: str) -> dict[str, int]:
        """See SessionChunks."""
        return asdict(await self._there(self.stored.counts(self.scope, place)))

    def _shelf(self, place: str, name: str) -> ChunkShelf:
        return ChunkShelf(self.scope, place, name)

    async def _there(self, work: Coroutine[Any, Any, T]) -> T:
        if asyncio.get_running_loop() is self.loop:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))


def chunks_of(sessions: Sessions, session: Session) -> StoredChunks:
    """Those of a session as it is now."""
    return StoredChunks(
        sessions.store.chunks,
        session.scope,
        session.view.incarnation,
        sessions.clock_ms,
        asyncio.get_running_loop(),
    )
