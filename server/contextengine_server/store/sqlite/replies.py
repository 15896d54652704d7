"""What request ids were answered with, and what sessions take, in the SQLite store."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from contextengine_server.context.scope import Scope
from contextengine_server.store.rows import StoredReply

from . import passages, reads, writes

T = TypeVar("T")


class SqliteReplies(ABC):
    """The store's answers."""

    @abstractmethod
    async def _read(self, read: Callable[..., T], *args: Any) -> T:
        """What `read` finds with a connection of the store's."""

    @abstractmethod
    async def _write(
        self,
        work: Callable[[sqlite3.Connection], T],
        then: Callable[[T], None] = ...,
        *,
        tenant: str = "",
    ) -> T:
        """What work answers on the connection that writes."""

    async def reply(self, scope: Scope, request_id: str) -> StoredReply | None:
        """What a request id was answered with."""
        return await self._read(reads.reply, scope, request_id)

    async def size(self, scope: Scope) -> int:
        """Bytes of a session's own rows."""
        return await self._read(passages.size, scope)

    async def remember(self, scope: Scope, reply: StoredReply) -> None:
        """Keeps an answer outside a commit; the first one under an id stays."""
        await self._write(lambda db: writes.remember(db, scope, reply), tenant=scope.tenant)

    async def stray_replies(self, scope: Scope, newest: int, *, erase: bool = False) -> int:
        """How many answers are kept for revisions above `newest`; with `erase` they are erased."""
        if erase:
            return await self._write(
                lambda db: writes.erase_stray_replies(db, scope, newest), tenant=scope.tenant
            )
        return await self._read(reads.stray_replies, scope, newest)
