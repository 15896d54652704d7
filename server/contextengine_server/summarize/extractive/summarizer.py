"""The summarizer that needs no key and no network: it chooses what the messages themselves said.

It takes the units that bring the most for their tokens, where what an earlier choice brought counts
no more, and shows them in the order in which they were said. The same request gives the same
summary, on any machine.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from functools import cache

from contextengine_server.summarize.extractive.units import Unit, holds, units_of
from contextengine_server.summarize.request import (
    SourceMessage,
    SummarizerFailed,
    SummaryRequest,
    SummaryResult,
)
from contextengine_server.summarize.workers.pool import WorkerPool

NAME = "extractive"

_TOLD = 0.35
"""What a thing is still worth that the summary before this one told already."""

_FOCUS = 4.0
"""How much more a unit is worth when it holds every word of the focus."""

_COST = 6
"""Added to the cost of each unit, so that a single number out of its sentence does not win by being
short."""

_INDENT = "\n "
_JOINT = 1
"""Tokens between two units, about."""
_ROOM = 8
"""Tokens left of the target that are worth another look."""


class ExtractiveSummarizer:
    """Extracts in a worker process, in a session's reference encoding."""

    name = NAME

    def __init__(self, pool: WorkerPool, encoding: str) -> None:
        self._pool = pool
        self._encoding = encoding

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        """The summary, at most the target and at most half of the source. Raises
        SummarizerFailed."""
        return await self._pool.run(extract_in_worker, request, self._encoding)


def extract_in_worker(request: SummaryRequest, encoding: str) -> SummaryResult:
    """`extract` with the counter of a worker process."""
    return extract(request, _counter(encoding))


@cache
def _counter(encoding: str) -> Callable[[str], int]:
    from contextengine_server.tokens import (
        TokenCounter,
    )  # late: the serving process never counts here

    return TokenCounter(encoding).count_text


def extract(request: SummaryRequest, count: Callable[[str], int]) -> SummaryResult:
    """The extractive summary of a request. Pure. Raises SummarizerFailed where nothing fits the
    target."""
    # Half of the source at most: less would hardly be a summary, and the law asks that it shrinks.
    target = min(request.target_tokens, max(1, request.source_tokens // 2))
    choice = _Choice(request, count)
    text, tokens, left = "", 0, target
    while left >= _ROOM and choice.take(left):
        # The units were counted one by one; together, with what joins them, they come to a little
        # more or less.
        text, tokens = choice.show()
        while tokens > target and choice.drop(tokens - target):
            text, tokens = choice.show()
        left = target - tokens
    if not text:
        raise SummarizerFailed(
            f"no sentence fits {target} tokens" if choice.units else "the messages hold no text"
        )
    return SummaryResult(text, tokens, NAME)


class _Choice:
    """Units of a request's messages, chosen one by one, the most valuable first."""

    def __init__(self, request: SummaryRequest, count: Callable[[str], int]) -> None:
        self.units = units_of(request.messages)
        self._messages, self._count = request.messages, count
        self._worth, self._boosts = _worths(self.units, request), _boosts(self.units, request.focus)
        self._sizes = [_estimate(unit.text) + _COST for unit in self.units]
        self._names = _names_shown(request.messages, count)
        self._shown = [0] * len(request.messages)
        self._covered: set[str] = set()
        self._chosen: list[Unit] = []
        self._heap = [(-self._value(index), index) for index in range(len(self.units))]
        heapq.heapify(self._heap)

    def take(self, tokens: int) -> bool:
        """Chooses units of about so many tokens; False where there are none."""
        before, wait = len(self._chosen), []
        while self._heap and tokens > 0:
            entry = heapq.heappop(self._heap)
            index = entry[1]
            # What was covered since may have lowered the value: then it waits for its new turn.
            now = (-self._value(index), index)
            if self._heap and now > self._heap[0]:
                heapq.heappush(self._heap, now)
                continue
            unit = self.units[index]
            name = 0 if self._shown[unit.message] else self._names[unit.message]
            cost = self._count(unit.text) + _JOINT + name
            if cost > tokens:
                wait.append(now)
                continue
            tokens -= cost
            self._shown[unit.message] += 1
            self._covered.update(thing for thing, _ in unit.holds)
            self._chosen.append(unit)
        for entry in wait:
            heapq.heappush(self._heap, entry)
        return len(self._chosen) > before

    def drop(self, tokens: int) -> bool:
        """Takes the last units back, of at least so many tokens; False where there are none."""
        while self._chosen and tokens > 0:
            tokens -= self._count(self._chosen.pop().text)
        return bool(self._chosen)

    def show(self) -> tuple[str, int]:
        """The text of what was chosen, and its tokens."""
        text = _show(
            sorted(self._chosen, key=lambda unit: (unit.message, unit.position)), self._messages
        )
        return text, self._count(text)

    def _value(self, index: int) -> float:
        unit = self.units[index]
        new = sum(self._worth[thing] for thing, _ in unit.holds if thing not in self._covered)
        crowd = 1 + unit.crowd * self._shown[unit.message]
        return self._boosts[index] * unit.weight * (unit.own + new) / (crowd * self._sizes[index])


def _names_shown(messages: Sequence[SourceMessage], count: Callable[[str], int]) -> list[int]:
    """What it costs to say who speaks: nothing where the message before has the same speaker."""
    names = [_name(message) for message in messages]
    return [0 if at and names[at - 1] == name else count(name) for at, name in enumerate(names)]


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
    """About how many tokens a text has: exact enough to compare, and far quicker than to count
    all."""
    return (
        len(text) / 4 if text.isascii() else sum(0.25 if char < "\u0250" else 0.8 for char in text)
    )


def _name(message: SourceMessage) -> str:
    if message.role == "summary":
        return ""
    name = " ".join(message.name.split())[:64]
    return f"{message.role} {name}: " if name else f"{message.role}: "


def _show(units: Sequence[Unit], messages: Sequence[SourceMessage]) -> str:
    """The units in order, with the name of who speaks where another begins, and a mark where
    something was left out in between.

    What follows on lines of its own is indented: no text can pass for a line of another role.
    """
    rows: list[str] = []
    last: Unit | None = None
    for unit in units:
        message, text = messages[unit.message], unit.text
        if message.role == "summary":
            rows.append(text)
        elif last is None or _name(messages[last.message]) != _name(message):
            rows.append(_name(message) + text)
        elif last.message != unit.message or unit.line or last.line:
            rows[-1] += _INDENT + text
        elif unit.position == last.position + 1:
            rows[-1] += " " + text
        else:
            rows[-1] = rows[-1].rstrip(".,;:") + " … " + text
        last = unit
    return "\n".join(rows)
