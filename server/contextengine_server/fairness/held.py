"""Who holds how many of a limited number of places, and who makes room."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import Generic, TypeVar

from .turns import Weight, equal

T = TypeVar("T")


class Held(Generic[T]):
    """Places of one kind, and what holds them, by key.

    One key alone may hold them all. Where all are held and somebody comes whose share would still
    be smaller than the largest, it is the largest that makes room: so those who always want more
    end with shares that are as their weights.
    """

    def __init__(self, limit: int, weight: Weight = equal) -> None:
        self.limit = limit
        self._weight = weight
        self._by_key: dict[str, dict[T, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        for holders in tuple(self._by_key.values()):
            yield from tuple(holders)

    @property
    def keys(self) -> Set[str]:
        """The keys that hold any."""
        return self._by_key.keys()

    @property
    def full(self) -> bool:
        """True where every place is held."""
        return self._count >= self.limit

    def of(self, key: str) -> int:
        """How many places a key holds."""
        return len(self._by_key.get(key, ()))

    def add(self, key: str, holder: T) -> None:
        """The holder has a place, whatever the limit."""
        holders = self._by_key.get(key)
        if holders is None:
            holders = self._by_key[key] = {}
        if holder not in holders:
            holders[holder] = None
            self._count += 1

    def discard(self, key: str, holder: T) -> None:
        """The holder has none, or none any more."""
        holders = self._by_key.get(key)
        if holders is not None and holder in holders:
            del holders[holder]
            self._count -= 1
            if not holders:
                del self._by_key[key]

    def largest_before(self, key: str) -> str | None:
        """The key with the largest share, where that is larger than that of `key` would be with one
        more; None: nobody need make room for it."""
        if not self._by_key:
            return None
        largest = max(self._by_key, key=self._share)
        more = (self.of(key) + 1) / self._weight(key)
        return largest if largest != key and self._share(largest) > more else None

    def newest(self, key: str, may: Callable[[T], bool] | None = None) -> T | None:
        """Which of a key's holders came last, of those that may go: the least is lost with it."""
        holders = reversed(self._by_key.get(key, {}))
        return next((one for one in holders if may is None or may(one)), None)

    def _share(self, key: str) -> float:
        return len(self._by_key[key]) / self._weight(key)
