"""How long a provider should keep a session's prefix: five minutes for a session that is new, an
hour for one that has proved that it goes on and reads what was kept. Pure: the time is an argument.

The numbers are those of Comis's adaptive cache retention, and of its guard over times to live.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

SHORT_MS = 5 * 60_000
LONG_MS = 60 * 60_000
"""How long providers keep a prefix that was asked to be kept for short, and for long."""

PROVEN_TURNS = 3
"""Turns with which a session has proved itself, where anything was read from the cache."""
LARGE_WRITE = 20_000
"""A first turn that wrote more than so many tokens proves it with the second."""
GROWTH = 1.1
"""A turn that reads no more than so many times what was read at the promotion has not grown."""
FLAT_TURNS = 5
"""Turns in a row without growth after which the prefix does not earn its price."""


class CacheHistory(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the reports of a session told of its provider's cache."""

    turns: int = 0
    turn: int = -1
    """The newest turn that was reported; -1: none was."""
    reads: int = 0
    """Tokens read, over all turns."""
    first_write: int = 0
    """Tokens written in the first turn."""
    turn_read: int = 0
    """The most that a call of the newest turn read."""
    proven: bool = False
    baseline: int = 0
    """What was read when it had proved itself."""
    flat: int = 0
    """How many turns in a row have not grown since, the newest not among them."""
    last_ms: int = 0
    """When the newest report came, milliseconds since 1970 UTC; 0: none did."""

    @property
    def long(self) -> bool:
        """True where the prefix should be kept for long."""
        return self.proven and self.flat < FLAT_TURNS

    def expired(self, at_ms: int) -> bool:
        """True where what the newest call left in the cache is gone."""
        kept_ms = LONG_MS if self.long else SHORT_MS
        return bool(self.last_ms) and at_ms - self.last_ms > kept_ms

    def reported(self, turn: int, read: int, write: int, at_ms: int) -> CacheHistory:
        """The history with a call's report. After a cache that is gone it begins anew."""
        known = CacheHistory() if self.expired(at_ms) else self
        if turn != known.turn:
            known = replace(
                known._over(), turns=known.turns + 1, turn=turn, turn_read=0, last_ms=at_ms
            )
        known = replace(
            known,
            reads=min(known.reads + read, 2**53),
            first_write=known.first_write + (min(write, 2**53) if known.turns == 1 else 0),
            turn_read=max(known.turn_read, read),
            last_ms=at_ms,
        )
        if known.proven:
            # One read beyond lifts it at once.
            return known if known._flat_turn else replace(known, flat=0)
        quick = known.turns >= 2 and known.first_write > LARGE_WRITE
        if known.reads and (quick or known.turns >= PROVEN_TURNS):
            return replace(known, proven=True, baseline=known.turn_read)
        return known

    @property
    def _flat_turn(self) -> bool:
        return self.turn_read <= GROWTH * self.baseline

    def _over(self) -> CacheHistory:
        """With the newest turn over."""
        if not self.proven:
            return self
        return replace(self, flat=self.flat + 1 if self._flat_turn else 0)


class RetentionRules(msgspec.Struct, frozen=True):
    """What is suggested where a request does not say."""

    adaptive: bool = True
    fixed: str = "long"
    """`none`, `short` or `long`, where it is not adaptive."""
