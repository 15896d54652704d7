"""Whose turn it is: weighted fair queueing by virtual time.

Each key has a time of its own, which whatever is done for it moves on by the cost over the key's
weight. Who is furthest behind comes next. Somebody who comes, or comes back, begins at the time of
the one served last: what he did not use before is not owed to him. So over any stretch in which two
keys always wait, what each got over its weight differs by no more than one piece of work of each
(start-time fair queueing, Goyal, Vin and Cheng, SIGCOMM 1996).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")

Weight = Callable[[str], float]
"""The weight of a key, above 0."""

_KEPT = 4_096
"""So many keys are remembered. Where more are ahead of the rest, all begin alike again: what each
of so many got is little."""


def equal(key: str) -> float:
    """Every key weighs the same."""
    return 1.0


_STALE = 64
"""So many places of lines that are gone are carried along before they are looked for."""


class Turns:
    """The times of keys."""

    def __init__(self, weight: Weight = equal) -> None:
        self._weight = weight
        self._now = 0.0
        """When the one that was served last began."""
        self._times: dict[str, float] = {}

    def time(self, key: str) -> float:
        """Where the key stands. The least is next."""
        return max(self._times.get(key, 0.0), self._now)

    def first(self, waiting: Iterable[str]) -> str:
        """Who of these is next; of several that stand alike the one named first. Raises ValueError
        where nobody is named."""
        return min(waiting, key=self.time)

    def served(self, key: str, cost: float = 1.0) -> None:
        """Something of this cost is done for the key now."""
        self._now = start = self.time(key)
        self._times[key] = start + cost / self._weight(key)
        if len(self._times) > _KEPT:
            # Those behind now stand where they would if they were new.
            ahead = {one: time for one, time in self._times.items() if time > self._now}
            self._times = ahead if len(ahead) < _KEPT // 2 else {}

    def forget(self) -> None:
        """Nobody waits: all begin alike."""
        self._times.clear()
        self._now = 0.0


class _Line(OrderedDict[T, float]):
    """What waits for one key, with what each costs."""

    number: int
    """Of two keys that stand alike, the one that has waited since before the other."""


class FairQueue(Generic[T]):
    """What waits, a line for each key. Within a line the first comes first; between lines it is as
    `Turns` says. Whose turn it is costs the logarithm of how many keys wait. Where nothing waits
    all begin alike again; or, not `forgets`, who had the last one comes behind others."""

    def __init__(self, weight: Weight = equal, *, forgets: bool = True) -> None:
        self._forgets = forgets
        self._turns = Turns(weight)
        self._lines: dict[str, _Line[T]] = {}
        self._order: list[tuple[float, int, str]] = []
        """A heap: the time of each line when it began, or was served last. The time may have moved
        on since, and a line of this number may be gone."""
        self._number = 0
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def waiting(self, key: str) -> int:
        """How many wait in a line."""
        return len(self._lines.get(key, ()))

    def push(self, key: str, item: T, cost: float = 1.0) -> None:
        """The item waits behind those of its key."""
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line()
            self._number += 1
            line.number = self._number
            self._place(key, line)
        line[item] = cost
        self._size += 1

    def cost(self, key: str) -> float:
        """What the first in a line costs; 0 where none waits."""
        return next(iter(self._lines.get(key, {}).values()), 0.0)

    def pop(self, may: Callable[[str], bool] | None = None) -> T | None:
        """Who is next, of those keys that may come now; None where there is none."""
        passed: list[tuple[float, int, str]] = []
        found: T | None = None
        while self._order:
            time, number, key = entry = heappop(self._order)
            line = self._lines.get(key)
            if line is None or line.number != number:
                continue
            if (now := self._turns.time(key)) > time:
                heappush(self._order, (now, number, key))
                continue
            if may is not None and not may(key):
                passed.append(entry)
                continue
            found, cost = line.popitem(last=False)
            self._turns.served(key, cost)
            self._place(key, line)
            self._shortened(key)
            break
        for entry in passed:
            heappush(self._order, entry)
        return found

    def newest(self, key: str) -> T | None:
        """Who came last to a line."""
        return next(reversed(self._lines.get(key, OrderedDict[T, float]())), None)

    def remove(self, key: str, item: T) -> bool:
        """The item does not wait any longer; False where it did not."""
        line = self._lines.get(key)
        if line is None or line.pop(item, None) is None:
            return False
        self._shortened(key)
        return True

    def _place(self, key: str, line: _Line[T]) -> None:
        heappush(self._order, (self._turns.time(key), line.number, key))

    def _shortened(self, key: str) -> None:
        self._size -= 1
        if self._lines[key]:
            return
        del self._lines[key]
        if not self._lines:
            if self._forgets:
                self._turns.forget()
            self._order.clear()
        elif len(self._order) > 2 * len(self._lines) + _STALE:
            self._order = [one for one in self._order if self._stands(one)]
            heapify(self._order)

    def _stands(self, entry: tuple[float, int, str]) -> bool:
        line = self._lines.get(entry[2])
        return line is not None and line.number == entry[1]
