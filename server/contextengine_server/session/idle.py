"""Ending sessions that nobody wrote to for long."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import structlog

from contextengine_server.errors import StoreDown
from contextengine_server.session.address import Address
from contextengine_server.session.lifecycle import Lifecycle
from contextengine_server.session.sessions import Sessions
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.protocols import Store

MAX_SWEEP = 100
"""Sessions that are looked at in one go."""

log = structlog.get_logger("contextengine.idle")


class IdleSweeper:
    """Ends idle sessions while the server runs."""

    def __init__(
        self, sessions: Sessions, store: Store, lifecycle: Lifecycle, idle_ms: int
    ) -> None:
        self._sessions, self._store, self._lifecycle = sessions, store, lifecycle
        self._idle_ms = idle_ms
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to sweep."""
        self._task = asyncio.create_task(self._run(), name="idle-sweep")

    async def stop(self) -> None:
        """Ends it."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def sweep(self) -> None:
        """Ends what is idle now."""
        for head in await self._store.idle_sessions(self._limit(), MAX_SWEEP):
            async with self._sessions.open(head.scope, lock=True) as session:
                if session.head is not None and session.head.updated_ms < self._limit():
                    address = Address(head.scope)
                    await self._lifecycle.end(session, address, None, session.revision)

    def _limit(self) -> int:
        return self._sessions.clock_ms() - self._idle_ms

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(min(60.0, max(self._idle_ms / 4000, 0.2)))
            try:
                await self.sweep()
            except (StoreUnavailable, StoreDown):
                pass  # the store says so itself, once
            except Exception:
                log.exception("idle sessions were not ended")
