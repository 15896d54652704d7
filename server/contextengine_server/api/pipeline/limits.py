"""How much the server takes at once, and how much of it is one tenant's."""

from __future__ import annotations

import msgspec

BESIDE = 16
"""A tenant beside others has one of so many of its places. Measured with 160 callers of one tenant
beside one of another, on two processors: from the quiet call's start to its end the server worked
for 311 ms with 32 places (p99), 57 with 8, 28 with 4, and 18 with 2. A second of the processor did
703 steps of the noisy one with 4 and 684 with 2, and of batches of 200 messages 67 and 63."""


class Limits(msgspec.Struct, frozen=True):
    """What the server takes at once."""

    calls: int = 1_000
    long_calls: int = 1_000
    streams: int = 1_024
    waits: int = 1_024
    working: int = 32
    """Ordinary calls of one tenant that are worked on at once, where no other is there."""
    max_wait_s: float = 5.0
    """How long a call waits for its turn."""
    retry_after_ms: int = 200
    """After what time who was refused is to come back, at least."""

    def beside(self, weight: float) -> int:
        """Of a tenant of this weight, where others are there."""
        return min(self.working, max(1, round(self.working // BESIDE * weight)))

    def behind(self, weight: float) -> int:
        """Of a tenant of this weight, while a call of another is worked on that waited for nothing.
        With this one place in place of two a quiet call worked for 14 ms beside batches and not for
        26, and for 9 beside steps and not for 12 (p99)."""
        return min(self.beside(weight), max(1, round(weight)))
