"""Events: what happens to sessions, for those who watch. Held in a ring; what was missed is said by
a gap event.

A position names the life of this server and a number in it, so that a position of another life is
known as a gap.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import islice

import msgspec

GAP = "watch:gap"

PAGE = 256
"""Events that are looked at for one watcher at once: one that is slow holds no more of them."""


class Event(msgspec.Struct, frozen=True):
    """Something that happened. Never text of messages."""

    number: int
    name: str
    time_ms: int
    tenant: str
    agent: str = ""
    session: str = ""
    revision: int = 0
    counts: dict[str, int] = {}
    attributes: dict[str, str] = {}


class Watched(msgspec.Struct, frozen=True):
    """What a watcher wants: empty means any."""

    tenant: str
    agent: str = ""
    session: str = ""
    names: tuple[str, ...] = ()

    def wants(self, event: Event) -> bool:
        """True where the event is of this tenant and of what is watched."""
        return (
            event.tenant == self.tenant
            and (not self.agent or event.agent == self.agent)
            and (not self.session or event.session == self.session)
            and (not self.names or event.name.startswith(self.names))
        )


class Events:
    """A ring of the newest events, and those who wait for the next."""

    def __init__(self, life: str, clock_ms: Callable[[], int], capacity: int = 10_000) -> None:
        self.life = life
        self._clock_ms = clock_ms
        self._ring: deque[Event] = deque(maxlen=capacity)
        self._next = 1
        self._waiters: set[asyncio.Future[None]] = set()
        self._closed = False

    def emit(
        self,
        name: str,
        tenant: str,
        agent: str = "",
        session: str = "",
        *,
        revision: int = 0,
        counts: dict[str, int] | None = None,
        attributes: dict[str, str] | None = None,
    ) -> None:
        """Adds an event."""
        event = Event(
            self._next,
            name,
            self._clock_ms(),
            tenant,
            agent,
            session,
            revision,
            counts or {},
            attributes or {},
        )
        self._ring.append(event)
        self._next += 1
        if self._waiters:
            self._wake()

    def position(self, number: int) -> str:
        """Where to resume behind the event with this number."""
        return f"{self.life}.{number}"

    def watch(self, watched: Watched, resume: str = "") -> AsyncIterator[Event]:
        """Events from the moment of this call on, or behind a position; ends when the server
        drains."""
        if not resume:
            return self._follow(watched, self._next - 1)
        number = self._number_in(resume)
        oldest = self._ring[0].number if self._ring else self._next
        if number is None or not oldest - 1 <= number < self._next:
            return self._follow(watched, oldest - 1, missed=True)
        return self._follow(watched, number)

    def _number_in(self, position: str) -> int | None:
        """The number that a position of this life names."""
        life, _, text = position.rpartition(".")
        return int(text) if life == self.life and re.fullmatch("[0-9]{1,18}", text) else None

    async def _follow(
        self, watched: Watched, number: int, *, missed: bool = False
    ) -> AsyncIterator[Event]:
        """Events behind a number."""
        if missed:
            yield self._gap(number, watched)
        while True:
            ready = self._since(number)
            if ready and ready[0].number > number + 1:
                yield self._gap(ready[0].number - 1, watched)
            for event in ready:
                number = event.number
                if watched.wants(event):
                    yield event
            if number == self._next - 1:
                if self._closed:
                    return
                await self._wait()

    def close(self) -> None:
        """Ends every watch once it has seen what there is."""
        self._closed = True
        self._wake()

    def _gap(self, number: int, watched: Watched) -> Event:
        return Event(number, GAP, self._clock_ms(), watched.tenant)

    def _since(self, number: int) -> Sequence[Event]:
        if not self._ring:
            return []
        skip = max(0, number + 1 - self._ring[0].number)
        return list(islice(self._ring, skip, skip + PAGE))

    async def _wait(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
