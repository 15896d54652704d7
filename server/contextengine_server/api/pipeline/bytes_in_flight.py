"""How many bytes of requests and replies are in memory at once, of all callers and of each tenant.

gRPC hands a message over when all of it is there, so nobody knows how large one is before it is in
memory. So two things are bounded: how many calls are being read at once, each of which may bring
the largest message there is, and the bytes of large messages that were read or are being sent,
until their calls are done. What is beyond is refused and says when to come back.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from functools import partial
from time import thread_time

import msgspec

from contextengine_server.api.pipeline.call import Call
from contextengine_server.errors import Overloaded, TooLarge
from contextengine_server.telemetry.metrics import Metrics

SMALL_BYTES = 64 * 1024
"""A message up to this size is not counted: the limit of calls bounds those. It is what HTTP/2
takes of a call that is not read at all."""

GATHERED_BYTES = 640
"""What a message that is gathered takes besides its own bytes: 440 to 600 were measured of small
ones, read and waiting to be stored."""

MAX_PLACES = 64
"""Calls that are read at once where memory is plenty: their bodies share one network."""

PATIENCE_S = 0.05
"""How long a call waits to be read before one that takes long must give way. A body that its client
has sent is read in a fraction of a millisecond."""

SLOW_S = 0.25
"""A body that is not there by then gives way to calls that wait: the largest one takes so long over
a network of two gigabits a second."""

LATE_S = 0.01
"""A loop that comes so much later to what was due is behind …"""

BUSY = 0.8
"""… and so is one whose thread worked for so much of the time: what was sent may be there, and has
not been taken yet."""

SLOW_BEHIND_S = 5.0
"""Beside a loop that is behind a body gives way after this time."""

RETRY_MS = 500
"""About how long a large request is worked on."""

BUDGETS = ("server", "tenant", "reading", "memory")


class ByteLimits(msgspec.Struct, frozen=True):
    """The bytes that may be in flight, and the largest message that gRPC lets through."""

    server: int
    tenant: int
    largest: int

    @property
    def places(self) -> int:
        """How many calls may be read at once: together they bring half of the server's bytes, but
        one that is slow does not keep all others out."""
        return max(2, min(MAX_PLACES, self.server // 2 // self.largest))


class BytesInFlight:
    """The bytes that calls hold. Belongs to one event loop. `pressed`: memory runs short."""

    def __init__(
        self, limits: ByteLimits, metrics: Metrics, pressed: Callable[[], bool] = bool
    ) -> None:
        self._limits, self._pressed = limits, pressed
        self.places = limits.places
        self.used = 0
        self.reading: dict[Call, float] = {}
        """The calls that are being read, since when on the loop's clock, the longest first."""
        self.waiting: OrderedDict[str, deque[_Waiter]] = OrderedDict()
        """Those that wait to be read, by tenant; the tenant whose turn is next first."""
        self._by_tenant: Counter[str] = Counter()
        self._look: asyncio.TimerHandle | None = None
        self._worked = 0.0
        """Processor time of the loop's thread when it was last begun to wait for a look."""
        self._refused = {
            budget: metrics.counter(
                "contextengine.bytes.refused",
                "Calls refused for their bytes, by what there was no more of",
                {"budget": budget},
                "{call}",
            )
            for budget in BUDGETS
        }
        metrics.gauge(
            "contextengine.bytes.in_flight",
            lambda: self.used,
            "Bytes of large requests and replies in memory",
            unit="By",
        )
        metrics.gauge(
            "contextengine.bytes.reading",
            lambda: len(self.reading),
            "Calls whose next message is being read",
            unit="{call}",
        )

    def of(self, tenant: str) -> int:
        """The bytes that a tenant holds."""
        return self._by_tenant[tenant]

    # Reading: whoever reads stands in `reading` meanwhile, waits for its `turn` before where there
    # is no place or others wait, and wakes them behind it.

    async def turn(self, call: Call) -> None:
        """Waits until the call may be read, and counts it among those that are. Tenants come by
        turns."""
        loop = call.task.get_loop()
        waiter = _Waiter(call, loop.create_future(), loop.time())
        queue = self.waiting.setdefault(call.caller.tenant, deque())
        queue.append(waiter)
        self._look_soon(loop)
        try:
            await waiter.turn
        except asyncio.CancelledError:
            if waiter in queue:
                queue.remove(waiter)
                if not queue:
                    del self.waiting[call.caller.tenant]
            else:
                del self.reading[call]
            self.wake()
            raise

    def wake(self) -> None:
        """A place is free: the next that waits takes it."""
        while self.waiting and len(self.reading) < self.places:
            tenant, queue = next(iter(self.waiting.items()))
            waiter = queue.popleft()
            self.waiting.move_to_end(tenant)
            if not queue:
                del self.waiting[tenant]
            self.reading[waiter.call] = waiter.call.task.get_loop().time()
            if not waiter.turn.done():
                waiter.turn.set_result(None)

    def _look_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._look is None:
            due, self._worked = loop.time() + PATIENCE_S, thread_time()
            self._look = loop.call_at(due, self._make_room, loop, due)

    def _make_room(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        """Has the slowest body of whoever has most of them give way to calls that wait."""
        self._look = None
        self.wake()
        if not self.waiting:
            return
        now, worked = loop.time(), thread_time() - self._worked
        late = now - due
        self._look_soon(loop)
        if now - min(queue[0].since for queue in self.waiting.values()) < PATIENCE_S:
            return
        # A loop that kept up has taken all that was there.
        behind = late > LATE_S or worked > BUSY * (PATIENCE_S + late)
        longest = SLOW_BEHIND_S if behind else SLOW_S
        places = Counter(call.caller.tenant for call in self.reading)
        slow = [call for call, since in self.reading.items() if now - since > longest]
        if slow:
            # Of equals the first, which is the one that takes the longest.
            call = max(slow, key=lambda call: places[call.caller.tenant])
            waited_ms = round((now - self.reading[call]) * 1000)
            call.stop(
                self._refusal(
                    "reading",
                    f"the request was not there after {waited_ms} ms, and others wait to be read:"
                    f" {self.places} are at once (server.max_bytes_in_flight)",
                    self.places,
                    len(self.reading),
                )
            )

    # Holding.

    def take(self, call: Call, size: int, what: str) -> None:
        """Counts a message of the call until it is given back, or else until the call is done, its
        reply sent. Raises Overloaded, or TooLarge where the call alone has more than there may be,
        and counts nothing then."""
        tenant, limits = call.caller.tenant, self._limits
        if what == "request" and size > SMALL_BYTES and self._pressed():
            raise self._refusal(
                "memory",
                f"the server has little memory left (server.memory_limit) and takes no {what} of"
                f" {size} bytes now, but small ones",
                SMALL_BYTES,
                size,
            )
        if call.held + size > min(limits.tenant, limits.server):
            raise self._never(call, size, what)
        if self._by_tenant[tenant] + size > limits.tenant:
            raise self._over("tenant", what, size, limits.tenant, self._by_tenant[tenant])
        if self.used + size > limits.server:
            raise self._over("server", what, size, limits.server, self.used)
        if not call.held:
            call.task.add_done_callback(partial(self._done, call))
        call.held += size
        self.used += size
        self._by_tenant[tenant] += size

    def give(self, call: Call, size: int) -> None:
        """Takes back what was counted of a call."""
        size = min(size, call.held)
        call.held -= size
        self.used -= size
        tenant = call.caller.tenant
        self._by_tenant[tenant] -= size
        if not self._by_tenant[tenant]:
            del self._by_tenant[tenant]

    def _done(self, call: Call, _: object) -> None:
        self.give(call, call.held)

    def _over(self, budget: str, what: str, size: int, limit: int, used: int) -> Overloaded:
        name = {"server": "max_bytes_in_flight", "tenant": "max_tenant_bytes_in_flight"}[budget]
        whose = {"server": "all callers", "tenant": "the tenant"}[budget]
        return self._refusal(
            budget,
            f"{used} bytes of requests and replies of {whose} are in memory, at most {limit} may be"
            f" (server.{name}), and the {what} has {size} more",
            limit,
            used,
        )

    def _never(self, call: Call, size: int, what: str) -> TooLarge:
        limits = self._limits
        budget = "tenant" if limits.tenant <= limits.server else "server"
        name = {"server": "max_bytes_in_flight", "tenant": "max_tenant_bytes_in_flight"}[budget]
        limit = min(limits.tenant, limits.server)
        self._refused[budget].inc()
        return TooLarge(
            f"this call alone has {call.held} bytes in memory, at most {limit} may be"
            f" (server.{name}), and the {what} has {size} more, which never fits. An Import that"
            " goes on behind a session that is there keeps what is new until all of it has come:"
            " send the session up to some message first, and then up to a later one; into a session"
            " that is not there any size goes",
            metadata={"budget": budget, "limit": str(limit), "used": str(call.held)},
        )

    def _refusal(self, budget: str, text: str, limit: int, used: int) -> Overloaded:
        self._refused[budget].inc()
        return Overloaded(
            f"{text}; send it again after the delay given, or less at once",
            metadata={"budget": budget, "limit": str(limit), "used": str(used)},
            retry_after_ms=RETRY_MS,
        )


class _Waiter(msgspec.Struct, eq=False):
    call: Call
    turn: asyncio.Future[None]
    since: float
