"""The choice of units: the most valuable for their tokens first, where what an earlier one brought
counts no more. Deterministic."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from contextengine_server.summarize.extractive.units import Unit, holds

_TOLD = 0.35
"""What a thing is still worth that the summary before this one told already."""

_FOCUS = 4.0
"""How much more a unit is worth when it holds every word of the focus."""

_COST = 4
"""Added to the cost of each unit, so that a single number out of its sentence does not win by being
short."""

_JOINT = 1
"""Tokens between two units, about."""


class UnitChoice:
    """Units chosen one by one. `labels`: by passage, what it costs to say who speaks; `told`: what
    is shown beside the units already, so that they need not tell it again."""

    def __init__(
        self,
        units: Sequence[Unit],
        labels: Sequence[int],
        count: Callable[[str], int],
        *,
        focus: str = "",
        previous: str = "",
        told: Sequence[str] = (),
    ) -> None:
        self._units, self._labels, self._count = units, labels, count
        self._worth, self._boosts = _worths(units, previous, told), _boosts(units, focus)
        self._sizes = [estimate(unit.text) + _COST for unit in units]
        self._shown = [0] * len(labels)
        self._covered: set[str] = set()
        self.chosen: list[Unit] = []
        self._heap = [(-self._value(index), index) for index in range(len(units))]
        heapq.heapify(self._heap)

    def take(self, tokens: int) -> bool:
        """Chooses units of about so many tokens; False where there are none."""
        before, wait = len(self.chosen), []
        while self._heap and tokens > 0:
            entry = heapq.heappop(self._heap)
            index = entry[1]
            # What was covered since may have lowered the value: then it waits for its new turn.
            now = (-self._value(index), index)
            if self._heap and now > self._heap[0]:
                heapq.heappush(self._heap, now)
                continue
            if not now[0] and self.chosen:
                break  # nothing is left that was not told
            unit = self._units[index]
            label = 0 if self._shown[unit.passage] else self._labels[unit.passage]
            if self._sizes[index] > 3 * tokens + 2 * _COST:
                continue  # a third of what was estimated is never enough
            cost = self._count(unit.text) + _JOINT + label
            if cost > tokens:
                wait.append(now)
                continue
            tokens -= cost
            self._shown[unit.passage] += 1
            self._covered.update(thing for thing, _ in unit.holds)
            self.chosen.append(unit)
        for entry in wait:
            heapq.heappush(self._heap, entry)
        return len(self.chosen) > before

    def drop(self, tokens: int) -> bool:
        """Takes the last units back, of at least so many tokens; False where there were none."""
        before = len(self.chosen)
        while self.chosen and tokens > 0:
            tokens -= self._count(self.chosen.pop().text)
        return len(self.chosen) < before

    def _value(self, index: int) -> float:
        unit = self._units[index]
        new = sum(self._worth[thing] for thing, _ in unit.holds if thing not in self._covered)
        crowd = 1 + unit.crowd * self._shown[unit.passage]
        return self._boosts[index] * unit.weight * (unit.own + new) / (crowd * self._sizes[index])


def estimate(text: str) -> float:
    """About how many tokens a text has: exact enough to compare, and far quicker than to count
    all."""
    return (
        len(text) / 4 if text.isascii() else sum(0.25 if char < "\u0250" else 0.8 for char in text)
    )


def _worths(units: Sequence[Unit], previous: str, told: Sequence[str]) -> dict[str, float]:
    before = {thing for text in (previous, *told) for thing, _ in holds(text)}
    worth: dict[str, float] = {}
    for unit in units:
        for thing, value in unit.holds:
            worth[thing] = max(worth.get(thing, 0.0), value * (_TOLD if thing in before else 1.0))
    return worth


def _boosts(units: Sequence[Unit], focus: str) -> list[float]:
    wanted = {thing for thing, _ in holds(focus)} | {
        word for word in focus.casefold().split() if len(word) > 2
    }
    if not wanted:
        return [1.0] * len(units)
    boosts = []
    for unit in units:
        text = unit.text.casefold()
        boosts.append(1.0 + _FOCUS * sum(thing in text for thing in wanted) / len(wanted))
    return boosts
