"""Whether the server says that it serves: only while its store can be written, which is tried, and
while there is memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from contextengine_server.session.sweeper import Sweeper
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.protocols import Store

PAUSE_S = 5.0
"""Between two writes that show that there can be others: no more than one page in that time."""
PATIENCE_S = 20.0
"""A write that takes longer has failed: what waits behind it would be cut off by its deadline."""

log = structlog.get_logger("contextengine.readiness")


class ReadinessProbe(Sweeper):
    """Writes to the store now and then, and has health follow: NOT_SERVING for the server as a
    whole while nothing can be written or memory is short. Its services go on, since reads need no
    write."""

    topic = "readiness"
    failure = "the store was not tried"

    def __init__(
        self,
        store: Store,
        set_serving: Callable[[str, bool], Awaitable[None]],
        why_not: Callable[[], str] = str,
    ) -> None:
        super().__init__()
        self._why_not = why_not
        """What else keeps the server from being ready, memory that runs short; empty: nothing."""
        self._store, self._set_serving = store, set_serving
        self._ready = True

    async def sweep(self) -> None:
        """Writes, and says what came of it."""
        ready, why = True, ""
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._store.probe()
        except StoreUnavailable as error:
            ready, why = False, str(error)
        except TimeoutError:
            ready, why = False, f"a write took more than {PATIENCE_S:g} s"
        if ready and (why := self._why_not()):
            ready = False
        if ready == self._ready:
            return
        self._ready = ready
        await self._set_serving("", ready)
        if ready:
            log.warning("ready_again")
        else:
            log.error("not_ready", why=why)

    def pause_s(self) -> float:
        """See Sweeper."""
        return PAUSE_S
