"""What callers hear who are not let in: why, when to come back, and how soon they hear it.

A refusal costs about a third of what a step does, and half of that before anybody knows whose the
call is: a tenant that sends ten times its share whatever becomes of it would have the server refuse
all day, and others wait behind it. So the first refusals of a tenant are told at once, and those
that follow faster than `RATE` are held back. Meanwhile their calls stay open, and a connection has
only so many at once (`max_streams_per_connection`): its client keeps what is beyond to itself, as
HTTP/2 has it. Those that are held back are let in after all as there is room, the first first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from contextengine_server.api.pipeline.in_flight import InFlight, Stoppable
from contextengine_server.errors import DomainError, Overloaded
from contextengine_server.fairness.cadence import Cadence
from contextengine_server.telemetry.metrics import Counter, Metrics

LONGEST_RETRY_MS = 2_000
"""Callers who are sent away for longer would leave a server idle that had caught up meanwhile."""

WHY = ("limit", "quota", "pushed_out", "waited", "deadline")
"""Why calls are refused: the server's limit, the tenant's quota, room made for a tenant that holds
less, a wait too long, too little time left of the deadline."""

RATE = 100.0
"""Refusals of a tenant a second that are told at once: some hundredths of the server's time."""
BURST = 16
"""So many may come together: a few milliseconds."""
LONGER = 3
"""How many times as long as a call may wait for its turn it may be held back, on average half of
it; never longer than half of what its deadline leaves."""
MOST_HELD = 8_192
"""Calls held back at once, each of which takes 23 KiB. Beyond them, and where memory is short, all
are told at once."""


class Refusals:
    """Of one server. Belongs to one event loop."""

    def __init__(
        self,
        kinds: tuple[InFlight, ...],
        retry_after_ms: int,
        max_wait_s: float,
        metrics: Metrics,
        pressed: Callable[[], bool],
    ) -> None:
        self._least_ms, self._max_wait_s = retry_after_ms, max_wait_s
        self._refused: dict[tuple[str, str], Counter] = {
            (kind.kind, why): metrics.counter(
                "contextengine.calls.refused",
                "Calls refused with OVERLOADED, by kind and cause",
                {"kind": kind.kind, "reason": why},
                "{call}",
            )
            for kind in kinds
            for why in WHY
        }
        self._count = 0
        self._cadence = Cadence(RATE, BURST, LONGER * max_wait_s)
        self._pressed = pressed
        self.held = 0
        """Calls that are held back."""
        self._lines: dict[tuple[str, str], dict[Stoppable, asyncio.Future[bool]]] = {}
        """Of a tenant and kind, who came first stands first."""
        metrics.gauge(
            "contextengine.calls.held_back",
            lambda: self.held,
            "Calls that are not let in and hear it later, since their tenant has many such",
            unit="{call}",
        )

    def of(self, kind: InFlight, why: str, limit: int, line: float) -> DomainError:
        """The refusal of a call. `line`: how many wait for a turn, over how many are worked on."""
        self._refused[kind.kind, why].value += 1
        text = {
            "limit": f"the server works on {limit} {kind.what} already",
            "quota": f"the tenant's quota of {kind.kind} is {limit}, and that many are there",
            "pushed_out": f"all {limit} {kind.what} are taken, and this tenant has the most of"
            " them: the place goes to another tenant",
            "waited": f"the call waited {self._max_wait_s:g} s (max_wait) for its turn behind"
            " others",
            "deadline": "the call waited for its turn until its deadline left no time to do it",
        }[why]
        return Overloaded(
            f"{text}; nothing was done, try again after the delay given",
            metadata={"limit": str(limit), "kind": kind.kind, "cause": why},
            retry_after_ms=self._retry_ms(line),
        )

    def _retry_ms(self, line: float) -> int:
        """The longer the line, the later; and no two at the same moment."""
        if not line:
            return self._least_ms
        self._count += 1
        spread = 1 + self._count * 0.618034 % 1  # the golden ratio: evenly, however many there are
        return min(LONGEST_RETRY_MS, int(self._least_ms * (1 + line) * spread))

    def delay(self, call: Stoppable) -> float:
        """Seconds after which a call that is not let in is to hear so; 0: at once."""
        seconds = self._cadence.wait(call.tenant, asyncio.get_running_loop().time())
        if seconds and (self.held >= MOST_HELD or self._pressed()):
            return 0.0
        remaining = call.remaining()
        return seconds if remaining is None else min(seconds, remaining / 2)

    async def hold(self, call: Stoppable, kind: InFlight, seconds: float) -> bool:
        """Waits for so long, or until it is told. True where the call was let in meanwhile."""
        loop = asyncio.get_running_loop()
        told: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_later(seconds, _tell, told, False)
        line = call.tenant, kind.kind
        held = self._lines.setdefault(line, {})
        held[call] = told
        self.held += 1
        try:
            return await told
        finally:
            timer.cancel()
            self.held -= 1
            del held[call]
            if not held:
                self._lines.pop(line, None)

    def first(self, tenant: str, kind: InFlight) -> Stoppable | None:
        """The call of a tenant and kind that is held back for the longest, of those that were not
        told yet."""
        held = self._lines.get((tenant, kind.kind), {})
        return next((call for call, told in held.items() if not told.done()), None)

    def let_in(self, call: Stoppable, kind: InFlight) -> None:
        """It has a place, and hears so."""
        _tell(self._lines[call.tenant, kind.kind][call], True)

    def tell_all(self) -> None:
        """Nobody waits any longer."""
        for held in self._lines.values():
            for told in held.values():
                _tell(told, False)


def _tell(told: asyncio.Future[bool], let_in: bool) -> None:
    if not told.done():
        told.set_result(let_in)
