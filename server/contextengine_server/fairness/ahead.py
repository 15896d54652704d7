"""Who goes before others for a while."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Ahead(Generic[T]):
    """Holders, each of a key, and since when. Whoever is for `lasts_s` goes before nobody any
    more: what hangs must not hold others up."""

    def __init__(self, lasts_s: float) -> None:
        self._lasts_s = lasts_s
        self._held: dict[T, tuple[str, float]] = {}
        """The first comes first."""
        self._by_key: dict[str, dict[T, None]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def add(self, key: str, holder: T, now: float) -> None:
        """The holder goes before others, from a time in seconds that never goes back."""
        self._held[holder] = key, now
        self._by_key.setdefault(key, {})[holder] = None

    def discard(self, holder: T) -> None:
        """The holder is done, if it was one."""
        if holder in self._held:
            key, _ = self._held.pop(holder)
            del self._by_key[key][holder]
            if not self._by_key[key]:
                del self._by_key[key]

    def forget(self, key: str) -> None:
        """None of a key goes before others any more."""
        for holder in self._by_key.pop(key, ()):
            del self._held[holder]

    def of_another(self, key: str, now: float) -> bool:
        """True where a holder of another key goes before."""
        held = self._held
        while held and held[first := next(iter(held))][1] < now - self._lasts_s:
            self.discard(first)
        return len(held) > len(self._by_key.get(key, ()))
