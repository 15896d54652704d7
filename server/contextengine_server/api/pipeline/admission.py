"""How many calls at once, and how a server that drains lets go of them."""

from __future__ import annotations

import asyncio
from typing import Protocol

import msgspec

from contextengine_server.errors import DomainError, Draining, Overloaded

DRAINING_RETRY_MS = 1_000
"""About what a restart takes, or what a balancer needs to learn that this server goes."""

CUT_OFF_WAIT_S = 1.0
"""How long a call that was stopped may take to answer."""


class Stoppable(Protocol):
    """A call that can be told to stop, and why."""

    def stop(self, error: DomainError) -> None: ...


class InFlight(msgspec.Struct, eq=False):
    """Calls of one kind that are worked on. Who is among `calls` was admitted."""

    limit: int
    what: str
    """The kind, and the setting of its limit."""
    calls: set[Stoppable] = msgspec.field(default_factory=set)


class Admission:
    """Calls in flight, ordinary ones and long-lived streams, each with a limit. Belongs to one
    event loop. Whoever admits a call asks for a `refusal` where the server is draining or the limit
    of the call's kind is reached."""

    def __init__(self, max_calls: int, max_streams: int, retry_after_ms: int) -> None:
        self.draining = False
        self.calls = InFlight(max_calls, "calls (max_concurrent_rpcs)")
        self.streams = InFlight(max_streams, "long-lived streams (max_long_lived_rpcs)")
        self.left = asyncio.Event()
        """Set, while the server drains, whenever a call is done."""
        self._retry_after_ms = retry_after_ms

    @property
    def in_flight(self) -> int:
        return len(self.calls.calls) + len(self.streams.calls)

    def refusal(self, kind: InFlight) -> DomainError:
        """Why a call of this kind is not taken now: Draining or Overloaded."""
        if self.draining:
            return Draining(
                "the server is shutting down and takes no new calls; ask another one, or this one"
                " after its restart",
                retry_after_ms=DRAINING_RETRY_MS,
            )
        return Overloaded(
            f"the server works on {kind.limit} {kind.what} already; try again after the delay"
            " given",
            metadata={"limit": str(kind.limit)},
            retry_after_ms=self._retry_after_ms,
        )

    async def drain(self, grace_s: float) -> int:
        """Refuses new calls, ends the long-lived ones, waits for the others and stops what is left
        after `grace_s`.

        Answers how many were stopped.
        """
        self.draining = True
        for stream in tuple(self.streams.calls):
            stream.stop(
                Draining(
                    "the server is shutting down; resume on another one",
                    retry_after_ms=DRAINING_RETRY_MS,
                )
            )
        await self._until_empty(grace_s)
        late = (*self.calls.calls, *self.streams.calls)
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
        try:
            async with asyncio.timeout(seconds):
                while self.in_flight:
                    self.left.clear()
                    await self.left.wait()
        except TimeoutError:
            pass
