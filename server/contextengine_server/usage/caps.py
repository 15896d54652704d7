"""What may still be spent: caps on the tokens of one execution, of a rolling hour and of a rolling
day. Pure: the time is an argument.

The three tiers, their order and their defaults are Comis's budget guard. An execution is a turn:
all model calls from what a user says to what the user says next.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

SpentAt = Sequence[tuple[int, int]]
"""(when, tokens), the oldest first. Times are milliseconds since 1970 UTC."""


class Refusal(msgspec.Struct, frozen=True):
    """Why a call may not be made."""

    scope: str
    """`per-execution`, `per-hour` or `per-day`."""
    used: int
    cap: int
    wait_ms: int | None
    """How long until the same call passes. None: no time helps."""


class Caps(msgspec.Struct, frozen=True):
    """The most tokens that an agent's calls may take, in and out."""

    per_execution: int = 2_000_000
    per_hour: int = 10_000_000
    per_day: int = 100_000_000

    def refusal(self, execution: int, spent: SpentAt, estimate: int, now_ms: int) -> Refusal | None:
        """Why a call of about `estimate` tokens may not be made; None where it may. Exactly a cap
        passes. `execution`: what the execution took."""
        if execution + estimate > self.per_execution:
            return Refusal("per-execution", execution, self.per_execution, None)
        windows = (("per-hour", self.per_hour, HOUR_MS), ("per-day", self.per_day, DAY_MS))
        waits = [_wait_ms(spent, cap - estimate, window, now_ms) for _, cap, window in windows]
        for (scope, cap, window), wait in zip(windows, waits, strict=True):
            if wait != 0:
                # What passes the hour again may still be over the day.
                known = [one for one in waits if one is not None]
                longest = max(known) if len(known) == len(waits) else None
                return Refusal(scope, within(spent, window, now_ms), cap, longest)
        return None


def within(spent: SpentAt, window_ms: int, now_ms: int) -> int:
    """The tokens spent in the window that ends now. What was spent later than now counts for as
    long again: a clock that was set back must not refuse calls for as long as it was set back."""
    return sum(tokens for at, tokens in spent if abs(now_ms - at) <= window_ms)


def _wait_ms(spent: SpentAt, room: int, window_ms: int, now_ms: int) -> int | None:
    """How long until no more than `room` is in the window; None: it never is."""
    if room < 0:
        return None
    used = within(spent, window_ms, now_ms)
    wait = 0
    for at, tokens in sorted(spent):
        if used <= room:
            break
        if abs(now_ms - at) <= window_ms:
            used -= tokens
            wait = at + window_ms + 1 - now_ms
    return wait
