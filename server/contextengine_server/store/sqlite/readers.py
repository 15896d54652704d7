"""A few threads that read, each with a connection of its own, so that reads wait neither for a
write nor for one another."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Concatenate, ParamSpec, TypeVar

import structlog

from contextengine_server.store.errors import StoreUnavailable

log = structlog.get_logger("contextengine.store")

P = ParamSpec("P")
T = TypeVar("T")


class Readers:
    """A pool over these connections, which it owns from now on."""

    def __init__(self, connections: Sequence[sqlite3.Connection]) -> None:
        self._connections = connections
        self._failing = False
        """Whether the last read met a failure."""
        self._free: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        for db in connections:
            self._free.put(db)
        self._threads = ThreadPoolExecutor(len(connections), thread_name_prefix="store-reader")

    async def run(
        self,
        read: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Reads in a thread. Raises StoreUnavailable."""

        def call() -> T:
            db = self._free.get()
            try:
                answer = read(db, *args, **kwargs)
                if self._failing:
                    self._failing = False
                    log.warning("store_can_be_read_again")
                return answer
            except sqlite3.Error as error:
                if not self._failing:  # once: every worker meets it, again and again
                    self._failing = True
                    log.error("store_cannot_be_read", why=str(error))
                # Without its cause: a log that shows it would show what it quotes.
                raise StoreUnavailable(f"the database cannot be read now: {error}") from None
            finally:
                self._free.put(db)

        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    async def stop(self) -> None:
        """Ends the threads after what they are at, then closes the connections."""
        await asyncio.to_thread(self._threads.shutdown)
        for db in self._connections:
            db.close()
