"""Erases what was staged and never became a session: a process ended meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from contextengine_server.session.sweeper import MAX_SWEEP, Sweeper
from contextengine_server.store.protocols import Store

from .staged_session import erase_staged

STALE_MS = 24 * 3600 * 1000
"""An import to which nothing came for so long is over, whoever took it in."""


class LeftoverSweeper(Sweeper):
    """`shared`: other servers may stage sessions in the same store."""

    topic = "staging"
    failure = "what was staged was not erased"
    at_once = True

    def __init__(self, store: Store, clock_ms: Callable[[], int], *, shared: bool) -> None:
        super().__init__()
        self._store, self._clock_ms = store, clock_ms
        self._started = 0 if shared else clock_ms()

    async def sweep(self) -> None:
        """Erases what is left over now."""
        before = max(self._started, self._clock_ms() - STALE_MS)
        for head in await self._store.staged(before, MAX_SWEEP):
            await erase_staged(self._store, head)

    def pause_s(self) -> float:
        """A minute."""
        return 60.0
