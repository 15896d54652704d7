"""The database's clock: one for all servers, whatever theirs say."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from contextengine_server.store.errors import StoreUnavailable

from .connections import Connections, Db

_NOW = "SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::bigint"
_EVERY_S = 30.0
"""How often it is asked again: two clocks part by some ms in this time, at most."""


class DatabaseClock:
    """How far the database's clock is from a clock of this machine that nobody sets."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._ahead_ms: int | None = None
        self._asking: asyncio.Task[None] | None = None

    def now_ms(self) -> int:
        """The database's time, wrong by as much as a message takes; this machine's own where it
        was never asked."""
        if self._ahead_ms is None:
            return time.time_ns() // 1_000_000
        return _since_start_ms() + self._ahead_ms

    async def start(self) -> None:
        """Asks, now and from time to time."""
        await self._connections.read(self._ask)
        self._asking = asyncio.create_task(self._ask_again())

    async def stop(self) -> None:
        """Asks no more. Safe twice."""
        asking, self._asking = self._asking, None
        self._ahead_ms = None
        if asking is not None:
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking

    async def _ask_again(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            with suppress(StoreUnavailable):  # what it said before goes on holding
                await self._connections.read(self._ask)

    async def _ask(self, db: Db) -> None:
        before = _since_start_ms()
        said: int = await db.value(_NOW)
        self._ahead_ms = said - (before + _since_start_ms()) // 2


def _since_start_ms() -> int:
    return time.monotonic_ns() // 1_000_000
