"""What one of several servers gives out of what the service as a whole grants."""

from __future__ import annotations

import msgspec


class Share(msgspec.Struct, frozen=True):
    """The part of one server, the `place`-th from 0 of so many that are there."""

    place: int = 0
    servers: int = 1

    def of(self, whole: int) -> int:
        """Its part, at least 1: who calls the same server all the time is not shut out. The parts
        of all add up to the whole, or to the number of servers where that is more."""
        return max(1, whole // self.servers + (self.place < whole % self.servers))
