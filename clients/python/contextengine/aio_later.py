"""What could not be stored, done once more beside the host, for asyncio. `later` is the same for
threads; both are written by hand, since tasks and threads are begun in other ways."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import grpc.aio

from .errors import ContextEngineError
from .pending import refused_for_good
from .types import Message

AGAIN = 1.0
"""Seconds until the service is asked again: one that is back is used within one."""

log = logging.getLogger("contextengine")


class AsyncLater:
    """The newest end of a turn that the service has not got: a host's list holds the older ones."""

    def __init__(self, store: Callable[[Sequence[Message]], Awaitable[None]]) -> None:
        """`store`: what failed. Raises ContextEngineError where it fails again."""
        self._store = store
        self._owed: Sequence[Message] | None = None
        self._task: asyncio.Task[None] | None = None
        self.lock = asyncio.Lock()
        """Whoever holds it is alone with the session."""

    def owe(self, messages: Sequence[Message]) -> None:
        """Stores these as soon as the service is there, unless they are settled before."""
        self._owed = messages
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._until_stored())

    def settle(self) -> None:
        """The session is where its host is."""
        self._owed = None

    async def _until_stored(self) -> None:
        while self._owed is not None:
            await asyncio.sleep(AGAIN)
            async with self.lock:
                await self._attempt()

    async def _attempt(self) -> None:
        if self._owed is None:
            return
        try:
            await self._store(self._owed)
        except ContextEngineError as error:
            if not refused_for_good(error):
                return
            log.warning("contextengine: the end of a turn is not stored: %s", error)
        except grpc.aio.UsageError:  # the client was closed
            log.warning("contextengine: the end of a turn comes with the next call")
        self._owed = None
