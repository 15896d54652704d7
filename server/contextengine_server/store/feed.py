"""What a feed keeps, as values."""

from __future__ import annotations

import msgspec


class Batch(msgspec.Struct, frozen=True):
    """What one server told the others at once."""

    before: int
    """The number that the newest note had when it was posted; 0: it is the first there is. Where a
    reader is not as far, what was in between is gone."""
    first: int
    """The number of its first note; the others follow one by one."""
    count: int
    body: bytes
    """Opaque here."""

    @property
    def last(self) -> int:
        """The number of its last note."""
        return self.first + self.count - 1
