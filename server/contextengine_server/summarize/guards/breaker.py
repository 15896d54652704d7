"""The circuit breaker: after some failures in a row nobody is asked for a while, then one trial
shows whether it is better.

A pure state machine. The state is a value, time is an argument, and the limits may differ from call
to call: so a tenant's state can be stored, and outlives a restart.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec
from msgspec.structs import asdict, replace

Phase = Literal["closed", "open", "half_open"]


class BreakerLimits(msgspec.Struct, frozen=True):
    """When the breaker opens, and for how long. Defaults are those of Comis's option
    summarizerBreaker (docs/dag.md#options-of-comis)."""

    failure_threshold: int = 5
    """Failures in a row that open it."""
    reset_timeout_ms: int = 60_000
    """How long it stays open, until a trial is let through."""
    half_open_timeout_ms: int = 30_000
    """How long that trial may take. One that is not back by then has failed."""


class Ticket(msgspec.Struct, frozen=True):
    """Leave to ask, to be given back with the outcome."""

    era: int
    trial: bool
    """True where everything depends on this one: nobody else is let through until it is back."""


class Breaker(msgspec.Struct, frozen=True):
    """The state of a breaker. Times are milliseconds since 1970 UTC."""

    failures: int = 0
    """Failures in a row while closed."""
    opened_ms: int | None = None
    """When it opened; None: closed."""
    trial_ms: int | None = None
    """When the trial that is out was let through."""
    era: int = 0
    """Rises whenever it opens, closes or sends out a trial: what was let through in an earlier era
    no longer counts."""

    def phase(self, limits: BreakerLimits, now_ms: int) -> Phase:
        """Where it stands: `half_open` while a trial is out, or the next call will be one."""
        state = self._aged(limits, now_ms)
        if state.opened_ms is None:
            return "closed"
        return "open" if state.trial_ms is None and state.wait_ms(limits, now_ms) else "half_open"

    def wait_ms(self, limits: BreakerLimits, now_ms: int) -> int:
        """How long until a call may be let through; 0: now."""
        state = self._aged(limits, now_ms)
        if state.opened_ms is None:
            return 0
        if state.trial_ms is not None:
            return state.trial_ms + limits.half_open_timeout_ms - now_ms
        elapsed = now_ms - state.opened_ms
        # A clock that was set back must not keep the breaker open for as long as it was set back.
        return limits.reset_timeout_ms - elapsed if 0 <= elapsed < limits.reset_timeout_ms else 0

    def admit(self, limits: BreakerLimits, now_ms: int) -> tuple[Breaker, Ticket | None]:
        """Lets a call through, or not (None)."""
        state = self._aged(limits, now_ms)
        if state.opened_ms is None:
            return state, Ticket(state.era, trial=False)
        if state.wait_ms(limits, now_ms):
            return state, None
        state = replace(state, trial_ms=now_ms, era=state.era + 1)
        return state, Ticket(state.era, trial=True)

    def succeeded(self, ticket: Ticket, limits: BreakerLimits, now_ms: int) -> Breaker:
        """The call had an answer: closed, and the count begins anew."""
        state = self._aged(limits, now_ms)
        if ticket.era != state.era:
            return state
        return Breaker(era=state.era + 1) if ticket.trial else replace(state, failures=0)

    def failed(self, ticket: Ticket, limits: BreakerLimits, now_ms: int) -> Breaker:
        """The call had none: one more in a row, or the trial was in vain."""
        state = self._aged(limits, now_ms)
        if ticket.era != state.era:
            return state
        failures = state.failures + 1
        if ticket.trial or failures >= limits.failure_threshold:
            return Breaker(failures, opened_ms=now_ms, era=state.era + 1)
        return replace(state, failures=failures)

    def released(self, ticket: Ticket) -> Breaker:
        """The call was given up, or turned out to ask nobody: it says nothing, and another may be
        the trial."""
        if ticket.era != self.era or not ticket.trial:
            return self
        return replace(self, trial_ms=None, era=self.era + 1)

    def encode(self) -> dict[str, Any]:
        """The state as JSON values."""
        return asdict(self)

    @classmethod
    def decode(cls, values: dict[str, Any]) -> Breaker:
        """The state that `encode` gave. Raises ValueError."""
        try:
            state = cls(**values)
        except TypeError as error:
            raise ValueError(f"is not the state of a breaker: {error}") from None
        numbers = (state.failures, state.era, state.opened_ms or 0, state.trial_ms or 0)
        if any(type(number) is not int for number in numbers):
            raise ValueError(f"is not the state of a breaker: {json.dumps(values)[:200]}")
        return state

    def _aged(self, limits: BreakerLimits, now_ms: int) -> Breaker:
        """The state after what time alone does: a trial that is not back in time has failed
        then."""
        if self.trial_ms is None or 0 <= now_ms - self.trial_ms < limits.half_open_timeout_ms:
            return self
        failed_ms = min(now_ms, self.trial_ms + limits.half_open_timeout_ms)
        return replace(self, opened_ms=failed_ms, trial_ms=None, era=self.era + 1)
