"""Who was there lately."""

from __future__ import annotations

PRESENT_S = 2.0
"""How long a tenant is thought to be there after its last call: longer than agents pause between
calls that follow each other, and soon over when they are done."""


class Presence:
    """Keys, and when each of them was last seen. Whoever was not for `lasts_s` is gone."""

    def __init__(self, lasts_s: float) -> None:
        self._lasts_s = lasts_s
        self._seen: dict[str, float] = {}
        """Who was seen last stands last."""

    def saw(self, key: str, now: float) -> None:
        """The key is there, at a time in seconds that never goes back."""
        self._seen.pop(key, None)
        self._seen[key] = now

    def several(self, now: float) -> bool:
        """True where more than one key was there lately."""
        seen = self._seen
        while seen and seen[first := next(iter(seen))] < now - self._lasts_s:
            del seen[first]
        return len(seen) > 1
