"""The summarizer that needs no key and no network: it chooses what the messages themselves said.

It takes the units that bring the most for their tokens, where what an earlier choice brought counts no more, and shows
them in the order in which they were said. The same request gives the same summary, on any machine.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from functools import cache

from contextengine_server.summarize.request import (
    SourceMessage,
    SummarizerFailed,
    SummaryRequest,
    SummaryResult,
)
from contextengine_server.summarize.units import Unit, holds, units_of
from contextengine_server.summarize.workers import WorkerPool

NAME = "extractive"

_TOLD = 0.35
"""What a thing is still worth that the summary before this one told already."""

_FOCUS = 4.0
"""How much more a unit is worth when it holds every word of the focus."""

_COST = 12
"""Added to the cost of each unit, so that a single number out of its sentence does not win by being short."""

_INDENT = "\n  "
_JOINT = 2
"""Tokens between two units, at most."""


class ExtractiveSummarizer:
    """Extracts in a worker process, in a session's reference encoding."""

    name = NAME

    def __init__(self, pool: WorkerPool, encoding: str) -> None:
        self._pool = pool
        self._encoding = encoding

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        """The summary, at most the target and at most half of the source. Raises SummarizerFailed."""
        return await self._pool.run(extract_in_worker, request, self._encoding)


def extract_in_worker(request: SummaryRequest, encoding: str) -> SummaryResult:
    """`extract` with the counter of a worker process."""
    return extract(request, _counter(encoding))


@cache
def _counter(encoding: str) -> Callable[[str], int]:
    from contextengine_server.tokens import TokenCounter  # late: the serving process never counts here

    return TokenCounter(encoding).count_text


def extract(request: SummaryRequest, count: Callable[[str], int]) -> SummaryResult:
    """The extractive summary of a request. Pure. Raises SummarizerFailed where nothing fits the target."""
    # Half of the source at most: less would hardly be a summary, and the law asks that it shrinks.
    target = min(request.target_tokens, max(1, request.source_tokens // 2))
    units = units_of(request.messages)
    chosen = _choose(units, request, target, count)
    while chosen:
        text = _show(sorted(chosen, key=lambda unit: (unit.message, unit.position)), request.messages)
        tokens = count(text)
        if tokens <= target:
            return SummaryResult(text, tokens, NAME)
        # The units were counted one by one; together, with the names before them, they may come to a little more.
        del chosen[-max(1, len(chosen) * (tokens - target) // tokens) :]
    raise SummarizerFailed(f"no sentence fits {target} tokens" if units else "the messages hold no text")


def _choose(
    units: Sequence[Unit], request: SummaryRequest, target: int, count: Callable[[str], int]
) -> list[Unit]:
    """The units to show, the most valuable first."""
    worth = _worths(units, request)
    covered: set[str] = set()
    shown = [0] * len(request.messages)

    def value(index: int) -> float:
        unit = units[index]
        new = sum(worth[thing] for thing, _ in unit.holds if thing not in covered)
        crowd = 1 + unit.crowd * shown[unit.message]
        return boosts[index] * unit.weight * (unit.own + new) / (crowd * (sizes[index] + _COST))

    boosts = _boosts(units, request.focus)
    sizes = [_estimate(unit.text) for unit in units]
    heap = [(-value(index), index) for index in range(len(units))]
    heapq.heapify(heap)
    chosen: list[Unit] = []
    left = target
    while heap and left > 0:
        _, index = heapq.heappop(heap)
        # What was covered since may have lowered the value: then it waits for its new turn.
        now = (-value(index), index)
        if heap and now > heap[0]:
            heapq.heappush(heap, now)
            continue
        unit = units[index]
        message = request.messages[unit.message]
        cost = count(unit.text) + _JOINT + (0 if shown[unit.message] else count(_name(message)))
        if cost > left:
            continue
        left -= cost
        shown[unit.message] += 1
        covered.update(thing for thing, _ in unit.holds)
        chosen.append(unit)
    return chosen


def _worths(units: Sequence[Unit], request: SummaryRequest) -> dict[str, float]:
    told = {thing for thing, _ in holds(request.previous_summary)}
    worth: dict[str, float] = {}
    for unit in units:
        for thing, value in unit.holds:
            worth[thing] = max(worth.get(thing, 0.0), value * (_TOLD if thing in told else 1.0))
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


def _estimate(text: str) -> float:
    """About how many tokens a text has: exact enough to compare, and far quicker than to count all."""
    return len(text) / 4 if text.isascii() else sum(0.25 if char < "\u0250" else 0.8 for char in text)


def _name(message: SourceMessage) -> str:
    if message.role == "summary":
        return ""
    name = " ".join(message.name.split())[:64]
    return f"{message.role} {name}: " if name else f"{message.role}: "


def _show(units: Sequence[Unit], messages: Sequence[SourceMessage]) -> str:
    """The units in order, with the name of who said them and a mark where something was left out in between.

    What follows on lines of its own is indented: no text can pass for a line of another role.
    """
    rows: list[str] = []
    last: Unit | None = None
    for unit in units:
        if last is None or last.message != unit.message:
            rows.append(_name(messages[unit.message]) + unit.text)
        elif messages[unit.message].role == "summary":
            rows.append(unit.text)
        elif unit.line or last.line:
            rows[-1] += _INDENT + unit.text
        else:
            rows[-1] += (" " if unit.position == last.position + 1 else " … ") + unit.text
        last = unit
    return "\n".join(rows)
