"""What agents spent, as values: what commits charge, and what that comes to. Times are milliseconds
since 1970 UTC."""

from __future__ import annotations

import msgspec


class Charge(msgspec.Struct, frozen=True):
    """What a model call of a session took. It is added to what its agent spent."""

    time_ms: int
    tokens: int
    """All that was billed, in and out."""
    provider: str = ""
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_micro_usd: int = 0
    saved_micro_usd: int = 0
    """Negative where the cache cost more than it saved."""
    unpriced: int = 0
    """1 where nobody knew what it cost."""


SLOT_MS = 300_000
"""Charges of one agent within the same five minutes are one `Spent`."""
SPENT_MS = 24 * 3600 * 1000
"""How long what was spent is kept by its time."""


class Spent(msgspec.Struct, frozen=True):
    """The tokens that an agent spent within five minutes."""

    last_ms: int
    """When the newest of them were."""
    tokens: int
