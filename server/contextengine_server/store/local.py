"""Feed and leases in memory: of a store that no other process has open."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

from contextengine_server.context.scope import Scope
from contextengine_server.store.feed import Batch


class FeedRows:
    """The batches, and who waits for the next. Feeds over one value are those of servers over one
    database. For one event loop."""

    def __init__(self) -> None:
        self.newest = 0
        self.batches: deque[Batch] = deque()
        self.waiting: set[asyncio.Event] = set()


class LocalFeed:
    """`Feed` over rows in memory."""

    def __init__(self, rows: FeedRows | None = None) -> None:
        self._rows = rows if rows is not None else FeedRows()
        self._woken = asyncio.Event()
        self._rows.waiting.add(self._woken)

    async def post(self, count: int, body: bytes) -> None:
        """Adds so many notes at once."""
        rows = self._rows
        first = max(rows.newest + 1, time.time_ns() // 1_000)
        rows.batches.append(Batch(rows.newest, first, count, body))
        rows.newest = rows.batches[-1].last
        for woken in rows.waiting:
            woken.set()

    async def since(self, number: int, limit: int) -> Sequence[Batch]:
        """The oldest batches that end above a number, in order."""
        found = (batch for batch in self._rows.batches if batch.last > number)
        return list(islice(found, limit))

    async def posted(self, seconds: float) -> None:
        """Waits for the next, or this time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()

    async def trim(self, keep_ms: int) -> None:
        """Lets batches go that were posted longer ago."""
        oldest, batches = time.time_ns() // 1_000 - keep_ms * 1_000, self._rows.batches
        while batches and batches[0].first < oldest:
            batches.popleft()


class LocalLeases:
    """`Leases` over a dictionary, which those of several servers may share."""

    def __init__(self, held: dict[tuple[Scope, str], tuple[str, float]] | None = None) -> None:
        self._held = held if held is not None else {}
        """By what is held: who holds it, and until when of the monotonic clock."""

    async def take(self, scope: Scope, kind: str, owner: str, lease_ms: int) -> bool:
        """True where `owner` holds it from now on for so long."""
        now = time.monotonic()
        holder, until = self._held.get((scope, kind), (owner, now))
        if holder != owner and until > now:
            return False
        self._held[scope, kind] = owner, now + lease_ms / 1_000
        return True

    async def give_back(self, scope: Scope, kind: str, owner: str) -> None:
        """It is free."""
        if self._held.get((scope, kind), ("", 0))[0] == owner:
            del self._held[scope, kind]

    async def owners(self, kind: str) -> Sequence[str]:
        """Who holds leases of a kind now."""
        now = time.monotonic()
        live = ((held, owner) for (_, held), (owner, until) in self._held.items() if until > now)
        return sorted({owner for held, owner in live if held == kind})
