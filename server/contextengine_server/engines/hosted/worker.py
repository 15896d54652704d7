"""A thread for code of others: it may block, hold what belongs to its thread, and never come
back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from ..patience import TookTooLong, WantsToExit

T = TypeVar("T")


class Worker:
    """A thread with an event loop of its own, on which one thing runs after the other."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True, name="hosted-engine")
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    async def run(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """What the work answers or raises. Raises WantsToExit, and TookTooLong: the thread is lost
        to it then."""
        future = asyncio.run_coroutine_threadsafe(_staying(work), self._loop)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            if future.done() and not future.cancelled():
                raise  # the work's own
            raise TookTooLong(seconds) from None

    def stop(self) -> None:
        """Ends the thread once what runs on it is done."""
        self._loop.call_soon_threadsafe(self._loop.stop)


async def _staying(work: Coroutine[Any, Any, T]) -> T:
    """What the work answers or raises, without what would end the loop below it."""
    try:
        return await work
    except (Exception, asyncio.CancelledError):
        raise
    except BaseException as error:
        raise WantsToExit(error) from error
