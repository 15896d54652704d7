"""How many calls at once, and how a server that drains lets go of them."""

from __future__ import annotations

import asyncio
from typing import Protocol

from contextengine_server.errors import DomainError, Draining, Overloaded

DRAINING_RETRY_MS = 1_000
"""About what a restart takes, or what a balancer needs to learn that this server goes."""

CUT_OFF_WAIT_S = 1.0
"""How long a call that was stopped may take to answer."""


class Stoppable(Protocol):
    """A call that can be told to stop, and why."""

    def stop(self, error: DomainError) -> None: ...


class Admission:
    """Calls in flight, ordinary ones and long-lived streams, each with a limit. Belongs to one
    event loop."""

    def __init__(self, max_calls: int, max_streams: int, retry_after_ms: int) -> None:
        self.draining = False
        self._calls: set[Stoppable] = set()
        self._streams: set[Stoppable] = set()
        self._max_calls, self._max_streams, self._retry_after_ms = (
            max_calls,
            max_streams,
            retry_after_ms,
        )
        self._left: asyncio.Event | None = None

    @property
    def in_flight(self) -> int:
        return len(self._calls) + len(self._streams)

    def enter(self, call: Stoppable, long_lived: bool) -> None:
        """Raises Draining or Overloaded. Safe to `leave` either way."""
        if self.draining:
            raise Draining(
                "the server is shutting down and takes no new calls; ask another one, or this one"
                " after its restart",
                retry_after_ms=DRAINING_RETRY_MS,
            )
        if long_lived:
            calls, limit, what = (
                self._streams,
                self._max_streams,
                "long-lived streams (max_long_lived_rpcs)",
            )
        else:
            calls, limit, what = self._calls, self._max_calls, "calls (max_concurrent_rpcs)"
        if len(calls) >= limit:
            raise Overloaded(
                f"the server works on {limit} {what} already; try again after the delay given",
                metadata={"limit": str(limit)},
                retry_after_ms=self._retry_after_ms,
            )
        calls.add(call)

    def leave(self, call: Stoppable, long_lived: bool) -> None:
        (self._streams if long_lived else self._calls).discard(call)
        if self._left is not None:
            self._left.set()

    async def drain(self, grace_s: float) -> int:
        """Refuses new calls, ends the long-lived ones, waits for the others and stops what is left
        after `grace_s`.

        Answers how many were stopped.
        """
        self.draining = True
        self._left = asyncio.Event()
        for stream in tuple(self._streams):
            stream.stop(
                Draining(
                    "the server is shutting down; resume on another one",
                    retry_after_ms=DRAINING_RETRY_MS,
                )
            )
        await self._until_empty(grace_s)
        late = (*self._calls, *self._streams)
        for call in late:
            call.stop(
                Draining(
                    f"the server shut down before the call was done, after a grace of {grace_s:g}"
                    " s; send it again with the same ids",
                    retry_after_ms=DRAINING_RETRY_MS,
                )
            )
        await self._until_empty(CUT_OFF_WAIT_S)
        return len(late)

    async def _until_empty(self, seconds: float) -> None:
        assert self._left is not None
        try:
            async with asyncio.timeout(seconds):
                while self.in_flight:
                    self._left.clear()
                    await self._left.wait()
        except TimeoutError:
            pass
