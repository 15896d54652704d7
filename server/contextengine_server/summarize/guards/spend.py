"""What a tenant's summaries may cost: tokens in a rolling hour and a rolling day.

A pure state machine, as the breaker is. A call is admitted by its estimate, which is spent from
then on; once the call is back, the difference to what it really took is put right in its place.
"""

from __future__ import annotations

from typing import Any

import msgspec

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

SLOT_MS = 300_000
"""Calls within the same five minutes are one entry, which leaves a window with the last of them. So
a state never holds more than 289 entries, and a call counts for up to five minutes longer than its
hour."""

MOST = 10**12
"""No call is taken to have cost more, whatever its provider reports."""


class SpendLimits(msgspec.Struct, frozen=True):
    """Tokens that a tenant may spend; 0: no limit. Defaults are those of Comis's option
    summarizerSpend (docs/dag.md#options-of-comis)."""

    per_hour: int = 500_000
    per_day: int = 5_000_000


class Spend(msgspec.Struct, frozen=True):
    """What was spent: (the last time, tokens) of each slot, oldest first. Times are milliseconds
    since 1970 UTC."""

    slots: tuple[tuple[int, int], ...] = ()

    def within(self, window_ms: int, now_ms: int) -> int:
        """The tokens spent in the window that ends now, and what was spent after it where the clock
        was set back by less than as long again."""
        return sum(tokens for at, tokens in self.slots if abs(now_ms - at) < window_ms)

    def refusal(self, estimate: int, limits: SpendLimits, now_ms: int) -> str | None:
        """Why a call of about `estimate` tokens is not admitted; None where it is."""
        for name, cap, window in (
            ("an hour", limits.per_hour, HOUR_MS),
            ("a day", limits.per_day, DAY_MS),
        ):
            spent = self.within(window, now_ms)
            if cap and spent + estimate > cap:
                return (
                    f"over the cap: {spent:,} of {cap:,} tokens {name} are spent, and it needs"
                    f" {estimate:,}"
                )
        return None

    def add(self, tokens: int, at_ms: int, now_ms: int) -> Spend:
        """With `tokens` spent at `at_ms`, or put right there where they are negative; without what
        left every window."""
        kept = (slot for slot in self.slots if abs(now_ms - slot[0]) < DAY_MS)
        slots = {at // SLOT_MS: (at, spent) for at, spent in kept}
        last, spent = slots.get(at_ms // SLOT_MS, (at_ms, 0))
        slots[at_ms // SLOT_MS] = (max(last, at_ms), min(max(spent + tokens, 0), MOST))
        return Spend(tuple(slots[key] for key in sorted(slots)))

    def encode(self) -> list[list[int]]:
        """The state as JSON values."""
        return [list(slot) for slot in self.slots]

    @classmethod
    def decode(cls, values: list[Any]) -> Spend:
        """The state that `encode` gave. Raises ValueError."""
        try:
            slots = tuple((at, tokens) for at, tokens in values)
        except (TypeError, ValueError):
            raise ValueError(
                "is not the state of spending: expected [time, tokens] pairs"
            ) from None
        if any(type(number) is not int for slot in slots for number in slot):
            raise ValueError("is not the state of spending: times and tokens are whole numbers")
        return cls(slots)
