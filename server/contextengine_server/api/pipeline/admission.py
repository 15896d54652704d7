"""Which calls are worked on now, which wait for their turn, and how a server that drains lets go of
them.

Calls are of kinds, each with a limit of the server and quotas of tenants. An ordinary call holds
one of a few places while it is worked on: more at once make none faster, and each slower. Where all
are taken it waits, in a line of its tenant, and tenants come by turns. While several tenants are
there, each has few places: all that is worked on shares one event loop, and whoever has much there
makes everyone wait at each step, which no turn at the door can mend. While a call of somebody who
has none waiting is worked on, the others have one place each. Calls that take as long as a model or
their client takes, streams that last, and reads that wait for a revision hold no such place.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

from contextengine_server.api.pipeline.in_flight import InFlight, Stoppable
from contextengine_server.api.pipeline.limits import Limits
from contextengine_server.api.pipeline.refusals import Refusals
from contextengine_server.errors import DomainError, Draining
from contextengine_server.fairness.ahead import Ahead
from contextengine_server.fairness.held import Held
from contextengine_server.fairness.presence import PRESENT_S, Presence
from contextengine_server.fairness.quota import TenantQuotas
from contextengine_server.fairness.turns import FairQueue
from contextengine_server.telemetry.metrics import Metrics

DRAINING_RETRY_MS = 1_000
"""About what a restart takes, or what a balancer needs to learn that this server goes."""

CUT_OFF_WAIT_S = 1.0
"""How long a call that was stopped may take to answer."""

SPARE = 4
"""A tenant alone has so many in so many and one of the places: where what it does hangs, others
still have some."""

AHEAD_S = 0.1
"""How long a call of a tenant that has none waiting goes before others': it takes a tenth of it,
and what takes longer waits for something else."""

LEARNT = 0.05
"""How much one call changes what a call is thought to take: it follows within some dozens."""


class Admission:
    """Calls in flight, by kind. Belongs to one event loop."""

    def __init__(
        self,
        limits: Limits,
        metrics: Metrics,
        quotas: TenantQuotas | None = None,
        pressed: Callable[[], bool] = bool,
        hurry: Callable[[bool], object] = bool,
    ) -> None:
        self.draining = False
        self.limits = limits
        self.quotas = quotas or TenantQuotas()
        self.left = asyncio.Event()
        """Set, while the server drains, whenever a call is done."""
        self.calls = self._kind("calls", limits.calls, "calls (max_concurrent_rpcs)")
        self.long_calls = self._kind(
            "long_calls", limits.long_calls, "calls of Compact, Import and Export (max_long_rpcs)"
        )
        self.streams = self._kind(
            "streams", limits.streams, "long-lived streams (max_long_lived_rpcs)"
        )
        self.waits = self._kind(
            "waits", limits.waits, "reads that wait for a revision (max_waiting_reads)"
        )
        self.kinds = (self.calls, self.long_calls, self.streams, self.waits)
        self._kinds = {kind.kind: kind for kind in self.kinds}
        self._queue: FairQueue[Stoppable] = FairQueue(self.quotas.weight)
        self._working = Held[Stoppable](limits.working + -(-limits.working // SPARE))
        self._ahead = Ahead[Stoppable](AHEAD_S)
        """Those that are worked on, of tenants that have none waiting."""
        self._hurry = hurry
        self._hurried = False
        """Whether one of these is worked on while others wait, as `hurry` was told."""
        self._looking: asyncio.TimerHandle | None = None
        self._present = Presence(PRESENT_S)
        self.takes_s = 0.0
        """How long an ordinary call takes once it is worked on, about."""
        self.refusals = Refusals(
            self.kinds, limits.retry_after_ms, limits.max_wait_s, metrics, pressed
        )
        self.few: dict[Stoppable, None] = {}
        """Ordinary calls that were let in unasked, all of them worked on: `enter` is not needed
        while there are fewer than `room`, and `leave` not for who is among them."""
        self.room = self._room()
        """How many may be let in unasked. None, once there were too many, until those are done."""
        self.quotas.watch(self._settle)  # from the next call on each is asked by the new ones
        for kind in self.kinds:
            metrics.gauge(
                "contextengine.calls.held",
                partial(self._count_of, kind),
                "Calls in flight, by kind",
                {"kind": kind.kind},
                "{call}",
            )
        metrics.gauge(
            "contextengine.calls.waiting",
            self._queue.__len__,
            "Ordinary calls that wait for their turn",
            unit="{call}",
        )

    def _kind(self, kind: str, limit: int, what: str) -> InFlight:
        return InFlight(kind, what, Held(limit, self.quotas.weight))

    def _room(self) -> int:
        return 0 if self.quotas.of_calls else min(self.limits.beside(1.0), self.limits.calls)

    def _settle(self) -> None:
        """From now on each is asked; those that were let in unasked are counted by tenant."""
        self.room = 0
        for call in self.few:
            self._see(call)
            self.calls.calls.add(call.tenant, call)
            self._give(call)
        self.few.clear()

    def _count_of(self, kind: InFlight) -> int:
        return len(kind.calls) + (len(self.few) if kind is self.calls else 0)

    @property
    def in_flight(self) -> int:
        return sum(map(self._count_of, self.kinds))

    def held(self, tenant: str) -> dict[str, int]:
        """What a tenant holds now, by kind, and how many of its calls wait for their turn, as
        `TenantUse` names them."""
        held = {kind.kind: kind.calls.of(tenant) for kind in self.kinds}
        held[self.calls.kind] += sum(call.tenant == tenant for call in self.few)
        return held | {"waiting_calls": self._queue.waiting(tenant)}

    def tenants(self) -> set[str]:
        """The tenants that hold anything."""
        few = {call.tenant for call in self.few}
        return few.union(*(kind.calls.keys for kind in self.kinds))

    def kind_of(self, kind: str) -> InFlight:
        """The kind of this name."""
        return self._kinds[kind]

    # One call

    def enter(self, call: Stoppable, kind: InFlight) -> Awaitable[None] | None:
        """Admits a call. Answers what it has to wait for before it is worked on, if anything, which
        may end with a refusal as well. Raises Draining or Overloaded."""
        if self.draining:
            raise _drained()
        if kind is self.calls:
            self._settle()
        if (why := self._take(call, kind)) is None:
            return self._admitted(call, kind)
        if not (seconds := self.refusals.delay(call)):
            raise self._refusal(kind, *why)
        return self._later(call, kind, seconds)

    async def _later(self, call: Stoppable, kind: InFlight, seconds: float) -> None:
        """Lets the call in after all where there is room meanwhile. Raises Draining or
        Overloaded."""
        if not await self.refusals.hold(call, kind, seconds):
            if self.draining:
                raise _drained()
            if (why := self._take(call, kind)) is not None:
                raise self._refusal(kind, *why)
        if (turn := self._admitted(call, kind)) is not None:
            await turn

    def _admitted(self, call: Stoppable, kind: InFlight) -> asyncio.Future[None] | None:
        if kind is not self.calls:
            return None
        self._see(call)
        return self._turn(call)

    def leave(self, call: Stoppable, kind: InFlight, took_s: float | None = None) -> None:
        """The call is done, or was not admitted. `took_s`: how long it was worked on, where it went
        well."""
        kind.calls.discard(call.tenant, call)
        self.waits.calls.discard(call.tenant, call)
        self._give_back(call)
        if took_s is not None:
            self.takes_s += (took_s - self.takes_s) * LEARNT
        if self.draining:
            self.left.set()
        elif not len(self.calls.calls):
            self.room = self._room()
        if self.refusals.held and not self.draining:
            self._let_in(call.tenant, kind)

    def _let_in(self, tenant: str, kind: InFlight) -> None:
        """Gives the place that a tenant's call had to the first of those that were not let in."""
        first = self.refusals.first(tenant, kind)
        if first is not None and self._take(first, kind) is None:
            self.refusals.let_in(first, kind)

    @asynccontextmanager
    async def away(self, call: Stoppable, kind: InFlight) -> AsyncIterator[None]:
        """The call only waits within this context: it is counted among the waits and holds nothing
        else. Behind it, its turn comes again. Raises Overloaded."""
        self._settle()
        if (why := self._take(call, self.waits)) is not None:
            raise self._refusal(self.waits, *why)
        kind.calls.discard(call.tenant, call)
        self._give_back(call)
        yield  # where the wait is cut off the call ends, and `leave` discards it
        self.waits.calls.discard(call.tenant, call)
        kind.calls.add(call.tenant, call)  # it was admitted: its limit is not asked again
        if kind is self.calls and (turn := self._turn(call)) is not None:
            await turn

    def _take(self, call: Stoppable, kind: InFlight) -> tuple[str, int] | None:
        """Has the call held among its kind. Answers why not, and the limit, where there is no
        room."""
        tenant, held = call.tenant, kind.calls
        most = self.quotas.here(tenant).most(kind.kind)
        if most is not None and held.of(tenant) >= most:
            return "quota", most
        if held.full and not self._make_room(tenant, kind):
            return "limit", held.limit
        held.add(tenant, call)
        return None

    def _make_room(self, tenant: str, kind: InFlight) -> bool:
        """Sends away the newest of the tenant that holds the most, where `tenant` holds less. What
        is worked on already is not given up."""
        largest = kind.calls.largest_before(tenant)
        if largest is None:
            return False
        if kind is self.calls:
            last = self._queue.newest(largest)
        else:
            last = kind.calls.newest(largest)
        if last is None:
            return False
        kind.calls.discard(largest, last)
        error = self._refusal(kind, "pushed_out", kind.calls.limit)
        if kind is self.calls:
            self._dismiss(last, error)
        else:
            last.stop(error)
        return True

    # Places of ordinary calls

    def _turn(self, call: Stoppable) -> asyncio.Future[None] | None:
        """Gives the call a place, or has it wait for one."""
        if not self._queue.waiting(call.tenant) and self._may(call.tenant):
            self._give(call)
            self._tell_hurry()
            return None
        loop = asyncio.get_running_loop()
        call.turn = turn = loop.create_future()
        self._queue.push(call.tenant, call)
        self._ahead.forget(call.tenant)
        timer = loop.call_later(self.limits.max_wait_s, self._waited, call, turn)
        turn.add_done_callback(lambda _: timer.cancel())
        self._look()
        return turn

    def _look(self) -> None:
        """Time alone may give places: who went before others, or was there, does so no more."""
        self._next()
        self._tell_hurry()
        if self._queue and not self._looking:
            self._looking = asyncio.get_running_loop().call_later(AHEAD_S, self._look_again)

    def _tell_hurry(self) -> None:
        hurried = len(self._queue) > 0 and len(self._ahead) > 0
        if hurried != self._hurried:
            self._hurried = hurried
            self._hurry(hurried)

    def _look_again(self) -> None:
        self._looking = None
        self._look()

    def _give(self, call: Stoppable) -> None:
        call.working = True
        self._working.add(call.tenant, call)
        if call.turn is None:
            self._ahead.add(call.tenant, call, asyncio.get_running_loop().time())

    def _give_back(self, call: Stoppable) -> None:
        """The call holds no place any more, and waits for none."""
        if call.working:
            call.working = False
            self._working.discard(call.tenant, call)
            self._ahead.discard(call)
            if self._queue:
                self._next()
            if self._hurried:
                self._tell_hurry()
        elif call.turn is not None:
            self._queue.remove(call.tenant, call)

    def gives_way(self, call: Stoppable) -> bool:
        """True while a call goes before those of this one's tenant."""
        return self._ahead.of_another(call.tenant, asyncio.get_running_loop().time())

    def _see(self, call: Stoppable) -> None:
        self._present.saw(call.tenant, asyncio.get_running_loop().time())

    def _may(self, tenant: str) -> bool:
        held = self._working.of(tenant)
        if self._working.full or held >= self.limits.working:
            return False
        now, weight = asyncio.get_running_loop().time(), self.quotas.weight(tenant)
        if held < self.limits.behind(weight):
            return True
        if self._ahead.of_another(tenant, now):
            return False
        return held < self.limits.beside(weight) or not self._present.several(now)

    def _next(self) -> None:
        """Gives what places are free to those whose turn it is. Who could not be served within its
        deadline is told at once, and nothing is done for it."""
        while not self._working.full and (call := self._queue.pop(self._may)) is not None:
            remaining, turn = call.remaining(), call.turn
            if turn is None or turn.done():
                continue
            if remaining is not None and remaining < 2 * self.takes_s:
                turn.set_exception(self._refusal(self.calls, "deadline", len(self._working)))
                continue
            self._give(call)
            turn.set_result(None)

    def _waited(self, call: Stoppable, turn: asyncio.Future[None]) -> None:
        if call.turn is turn and not turn.done():
            self._dismiss(call, self._refusal(self.calls, "waited", len(self._working)))

    def _dismiss(self, call: Stoppable, error: DomainError) -> None:
        """Ends the wait of a call with an error."""
        self._queue.remove(call.tenant, call)
        if call.turn is not None and not call.turn.done():
            call.turn.set_exception(error)

    def _refusal(self, kind: InFlight, why: str, limit: int) -> DomainError:
        return self.refusals.of(kind, why, limit, len(self._queue) / self._working.limit)

    # Ending

    async def drain(self, grace_s: float) -> int:
        """Refuses new calls, ends the long-lived ones, waits for the others and stops what is left
        after `grace_s`.

        Answers how many were stopped.
        """
        self.draining = True
        self._settle()
        self.refusals.tell_all()
        for stream in self.streams.calls:
            stream.stop(_draining("the server is shutting down; resume on another one"))
        await self._until_empty(grace_s)
        late = [call for kind in self.kinds for call in kind.calls]
        for call in late:
            call.stop(
                _draining(
                    f"the server shut down before the call was done, after a grace of {grace_s:g}"
                    " s; send it again with the same ids"
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


def _drained() -> Draining:
    return _draining(
        "the server is shutting down and takes no new calls; ask another one, or this one after its"
        " restart"
    )


def _draining(text: str) -> Draining:
    return Draining(text, retry_after_ms=DRAINING_RETRY_MS)
