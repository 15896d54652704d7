"""Events: what happens to sessions, for those who watch. The newest are held; what was missed is
said by a gap event.

Where more happens than is held, it is the tenant with the most events held that loses its oldest: a
noisy tenant pushes nothing of a quiet one out. Who watches is woken by what he watches alone.

A position names the life of this server and a number in it, so that a position of another life is
known as a gap. Where servers share what happens (`share`), events come back with numbers that all
of them have, and the life is that of what they share.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, takewhile

import msgspec

GAP = "watch:gap"

FOR_SERVERS = "server:"
"""How the names of events begin that servers tell each other and no watcher sees."""

_AHEAD = 10**15
"""Numbers that servers share begin with the time in microseconds: a position so far ahead was given
by nobody."""

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


class _Held:
    """The newest events of a tenant."""

    def __init__(self, lost: int) -> None:
        self.events: deque[Event] = deque()
        self.lost = lost
        """The number of the newest event that may have been the tenant's and is held no more."""

    @property
    def newest(self) -> int:
        """The number of the newest event."""
        return self.events[-1].number if self.events else self.lost

    def since(self, number: int) -> Sequence[Event]:
        """The next events behind a number, a page at most."""
        behind = sum(1 for _ in takewhile(lambda one: one.number > number, reversed(self.events)))
        start = len(self.events) - behind
        return list(islice(self.events, start, start + PAGE))


class Events:
    """The newest events, `capacity` of them over all tenants, and those who wait for the next."""

    def __init__(self, life: str, clock_ms: Callable[[], int], capacity: int = 10_000) -> None:
        self.life = life
        self._clock_ms = clock_ms
        self._capacity, self._count = capacity, 0
        self._held: dict[str, _Held] = {}
        self._lost = 0
        """As `_Held.lost`, for the tenants of which nothing is held."""
        self._next = 1
        self._unsaid: deque[Event] | None = None
        """What is to be told to all servers before it is held here; None: this is the only one."""
        self._forgot = False
        """True where more was to be told than could be kept."""
        self._waiters: dict[str, dict[asyncio.Future[int], Watched]] = {}
        """By tenant. Who waits is told the number behind which there is something for him."""
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
        told: tuple[int, int] | None = None,
    ) -> None:
        """Adds an event. `told`: the number and the time that it has, where it was told to all
        servers and is held now, unless it is for them alone."""
        number, time_ms = (self._next, self._clock_ms()) if told is None else told
        event = Event(
            number, name, time_ms, tenant, agent, session, revision, counts or {}, attributes or {}
        )
        if self._unsaid is not None and told is None:
            self._tell(self._unsaid, event)
            return
        self._next = number + 1
        if name.startswith(FOR_SERVERS):
            return
        held = self._held.get(tenant)
        if held is None:
            held = self._held[tenant] = _Held(self._lost)
        held.events.append(event)
        self._count += 1
        if self._count > self._capacity:
            self._let_go()
        for waiter, watched in self._waiters.get(tenant, {}).items():
            if watched.wants(event) and not waiter.done():
                waiter.set_result(event.number - 1)

    def tell_servers(self, name: str, **attributes: str) -> None:
        """Tells other servers something that no watcher sees. Does nothing where there are none.

        It is an event of no tenant: older servers, which take it for one like others, show it to
        nobody either."""
        if self._unsaid is not None:
            named = FOR_SERVERS + name
            self._tell(self._unsaid, Event(0, named, self._clock_ms(), "", attributes=attributes))

    def _tell(self, unsaid: deque[Event], event: Event) -> None:
        self._forgot = self._forgot or len(unsaid) == self._capacity
        unsaid.append(event)  # the oldest goes where there is no room

    def share(self, life: str, number: int) -> None:
        """From now on events are kept for `unsaid`, and held once they come back (`emit` with
        `told`), with the numbers of a life that others share. What is up to this number is not
        held."""
        self.life, self._unsaid = life, deque(maxlen=self._capacity)
        self.lose(number)

    @contextmanager
    def unsaid(self) -> Iterator[tuple[list[Event], bool]]:
        """What is to be told, and whether there was more. Where that fails it is kept."""
        assert self._unsaid is not None
        events, forgot = list(self._unsaid), self._forgot
        self._unsaid.clear()
        self._forgot = False
        try:
            yield events, forgot
        except BaseException:
            behind = list(self._unsaid)
            self._forgot = forgot or self._forgot or len(events) + len(behind) > self._capacity
            self._unsaid.clear()
            self._unsaid.extend([*events, *behind])
            raise

    def lose(self, number: int) -> None:
        """Up to this number events may be missing, of whomever: nothing before it is held."""
        self._held.clear()
        self._count, self._lost, self._next = 0, number, number + 1
        for waiters in self._waiters.values():
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(self._lost - 1)

    def _let_go(self) -> None:
        """Of the tenants with the most events the oldest, an eighth of all at once: so what this
        costs is little for each event, however many tenants there are."""
        left, level = self._capacity - self._capacity // 8, 0
        sizes = sorted(len(held.events) for held in self._held.values())
        for index, size in enumerate(sizes):
            level = left // (len(sizes) - index)
            if size > level:
                break
            left -= size
        for tenant, held in list(self._held.items()):
            while len(held.events) > level:
                held.lost = held.events.popleft().number
                self._count -= 1
            if not held.events:
                del self._held[tenant]
                self._lost = max(self._lost, held.lost)

    def position(self, number: int) -> str:
        """Where to resume behind the event with this number."""
        return f"{self.life}.{number}"

    def watch(self, watched: Watched, resume: str = "") -> AsyncIterator[Event]:
        """Events from the moment of this call on, or behind a position; ends when the server
        drains."""
        if not resume:
            # What happened before and is told to all servers later is not of now.
            since_ms = 0 if self._unsaid is None else self._clock_ms()
            return self._follow(watched, self._next - 1, since_ms=since_ms)
        number = self._number_in(resume)
        ahead = -1 if number is None else number - self._next
        if self._unsaid is not None and number is not None and 0 <= ahead < _AHEAD:
            return self._follow(watched, number)  # another server was told of it earlier
        if number is None or number >= self._next:
            return self._follow(watched, self._lost_of(watched.tenant), missed=True)
        return self._follow(watched, number)

    def _number_in(self, position: str) -> int | None:
        """The number that a position of this life names."""
        life, _, text = position.rpartition(".")
        return int(text) if life == self.life and re.fullmatch("[0-9]{1,18}", text) else None

    def _lost_of(self, tenant: str) -> int:
        """The number up to which events of a tenant may be missing."""
        held = self._held.get(tenant)
        return self._lost if held is None else held.lost

    async def _follow(
        self, watched: Watched, number: int, *, missed: bool = False, since_ms: int = 0
    ) -> AsyncIterator[Event]:
        """Events behind a number that happened since a moment."""
        while True:
            lost = self._lost_of(watched.tenant)
            if missed or number < lost:
                missed, number = False, max(number, lost)
                yield Event(number, GAP, self._clock_ms(), watched.tenant)
                continue
            held = self._held.get(watched.tenant)
            for event in () if held is None else held.since(number):
                number = event.number
                if event.time_ms >= since_ms and watched.wants(event):
                    yield event
            # By now others may be there, and those that were may be gone.
            held = self._held.get(watched.tenant)
            if number >= (self._lost if held is None else held.newest):
                if self._closed:
                    return
                number = max(number, await self._wait(watched))

    def close(self) -> None:
        """Ends every watch once it has seen what there is."""
        self._closed = True
        for waiters in self._waiters.values():
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(self._next - 1)

    async def _wait(self, watched: Watched) -> int:
        """Until there is something for the watcher: the number behind which it is."""
        waiter: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        waiting = self._waiters.setdefault(watched.tenant, {})
        waiting[waiter] = watched
        try:
            return await waiter
        finally:
            del waiting[waiter]
            if not waiting and self._waiters.get(watched.tenant) is waiting:
                del self._waiters[watched.tenant]
