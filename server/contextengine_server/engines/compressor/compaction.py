"""What the compressor summarizes next: all between the head and the tail, into the one summary that
there is.

The summary is brought up to date: the next one is made of it and of what came since, and stands
for all of that. So there is one, of the newest state, and it is state of the store: nothing is read
from the text of messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import msgspec

from contextengine_server.context.lawful import least
from contextengine_server.context.layout import uncovered
from contextengine_server.context.settled import SCRAP
from contextengine_server.context.view import Summary, View

from ..base import LEFT_OUT_TOKENS
from ..contract import CompactionGoal, CompactionStep, NothingToDo
from .forms import coming_forms, forms_now, shrinkable
from .options import CompressorOptions
from .plan import fitted
from .roles import role_between
from .sizes import most_of_summary, summary_budget, threshold_in
from .tail import head, tails
from .words import HANDOFF_TOKENS

CHUNK = 100_000
"""The most tokens of messages that one summary takes in at a time."""
LOW_WATER = 0.85
"""A compaction leaves no more than this share of the threshold, where a shorter tail can do that:
else the next one would follow at once."""


class Lacking(msgspec.Struct, frozen=True):
    """What has no room although a summary was to make it."""

    raw: int = 0
    """Tokens of the steps that are neither shown nor summarized."""
    summaries: bool = False
    """Some of them are not shown."""

    @property
    def matters(self) -> bool:
        """True where it is more than a scrap."""
        return self.summaries or self.raw > SCRAP


class _Range(msgspec.Struct, frozen=True):
    """What a summary may cover."""

    first: int
    last: int
    gain: int
    """The tokens that leave the view with it."""
    raw: int
    """Of these the tokens of messages."""
    source: int
    """The tokens of messages that it stands for in the end."""
    below: tuple[Summary, ...]
    whole: bool
    """True where it reaches all that there is before the tail."""


class _Asked:
    """What one question about a view needs to know of it; each is worked out once, where it is
    needed: most of it takes time in proportion to the window."""

    def __init__(self, view: View, available: int, options: CompressorOptions) -> None:
        self.view, self.available, self.options = view, available, options

    @cached_property
    def saved(self) -> Mapping[int, int]:
        """What other forms of messages save now, by step."""
        return forms_now(self.view, self.available, self.options).saved

    @cached_property
    def used(self) -> int:
        """The view's tokens, messages in other forms counted as they are shown."""
        return self.view.view_tokens() - sum(self.saved.values())

    def reaches(self, tokens: int) -> bool:
        """True where so many are used. Forms take no more than the messages themselves, and leave
        all but results and long messages as it is: often that says enough."""
        most = self.view.view_tokens()
        if most < tokens:
            return False
        return most - shrinkable(self.view) >= tokens or self.used >= tokens

    @cached_property
    def coming(self) -> Mapping[int, int]:
        """What they will save once a summary is committed, by step."""
        return coming_forms(self.view, self.available, self.options).saved

    @cached_property
    def lacking(self) -> Lacking:
        """What has no room. Nothing where there are no summaries: whatever is left out without them
        is above the threshold."""
        view, available = self.view, self.available
        if not view.summaries or not view.evictions.evicted(available):
            return Lacking()
        shown = fitted(view, available, available, self.saved, self.options)
        there = {step for first, last in shown.ranges for step in range(first, last + 1)}
        there.update(view.must_stay())
        raw = sum(
            view.atom(step).tokens
            for first, last in uncovered(view)
            for step in range(first, last + 1)
            if step not in there and view.holds(step)
        )
        return Lacking(raw, len(shown.summaries) < len(view.summaries))


def due(view: View, available: int, measured: int | None, options: CompressorOptions) -> bool:
    """True from the threshold on, or where something has no room; and where there is something to
    take."""
    if not options.enabled or not view.steps:
        return False
    asked, limit = _Asked(view, available, options), threshold_in(view, available, options)
    over = (measured or 0) >= limit or asked.reaches(limit)
    wanted = over or asked.lacking.matters
    return wanted and least(view) + SCRAP < available and _has_work(view)


def _has_work(view: View) -> bool:
    """True where something before the newest step is uncovered; the window need not hold it."""
    stays = set(view.must_stay())
    return any(
        step not in stays
        for first, last in uncovered(view)
        for step in range(first, min(last, view.steps - 2, first + len(stays)) + 1)
    )


def next_step(
    view: View, goal: CompactionGoal, options: CompressorOptions
) -> CompactionStep | NothingToDo:
    """The next summary, or why there is none."""
    if not view.steps:
        return NothingToDo("nothing to compact")
    asked = _Asked(view, goal.available, options)
    limit, told = threshold_in(view, goal.available, options), goal.measured or 0
    if goal.reached and not asked.lacking.matters:
        return NothingToDo("already under target")
    over = goal.force or told >= limit or asked.reaches(limit)
    if not over and not asked.lacking.matters:
        return NothingToDo("below threshold")
    # What has no room is not shown any more: it is summarized even where it stands in the head.
    full = goal.available + 1
    crowded = told >= full or asked.reaches(full) or asked.lacking.matters
    behind = view.leading if crowded else head(view, goal.available, options)
    found: CompactionStep | None = None
    left: int | None = None
    low_water = int(LOW_WATER * limit)
    for number, tail in enumerate(tails(view, goal.available, options)):
        if number and (found is not None or not crowded):
            left = max(asked.used, told) if left is None else left
            if left <= low_water:
                break  # no need of a shorter tail
        covered = _range(view, goal, behind, tail)
        if covered is None:
            continue
        hidden = not covered.raw and asked.lacking.summaries
        step = _step(view, goal, covered, hidden=hidden)
        if step is None:
            continue
        found = step
        if not covered.whole:
            break  # nor would one change anything
        left = max(asked.used, told) - covered.gain + step.target_tokens
        if left > low_water:
            left -= _coming(covered, asked)
    if found is not None:
        return found
    return NothingToDo("already compacted" if view.summaries else "nothing to compact")


def _coming(covered: _Range, asked: _Asked) -> int:
    """The tokens that other forms will save behind a summary once it is committed, besides those
    that they save now."""
    now, coming = asked.saved, asked.coming
    return sum(coming[step] - now.get(step, 0) for step in coming if step > covered.last)


def _range(view: View, goal: CompactionGoal, behind: int, tail: int) -> _Range | None:
    """All from a step on to before the tail that is in memory, and the summaries among it."""
    stays = set(view.must_stay())
    most = max(1, min(CHUNK, goal.capacity)) if goal.capacity is not None else CHUNK
    first, last, raw, whole = -1, -1, 0, True
    for run_first, run_last in uncovered(view):
        for step in range(max(run_first, behind), min(run_last, tail - 1) + 1):
            if not view.holds(step):
                whole = False
                break
            if step in stays:
                last = step if first >= 0 else last
                continue
            tokens = view.atom(step).tokens
            if raw and raw + tokens > most:
                whole = False
                break
            first, last, raw = (step if first < 0 else first), step, raw + tokens
        if not whole:
            break
    if view.summaries:
        start = view.summaries[0].first_step
        first = min(first, start) if first >= 0 else start
        last = max(last, view.summaries[-1].last_step) if whole else last
    below = tuple(one for one in view.summaries if first <= one.first_step <= last)
    if not 0 <= first <= last:
        return None
    made = sum(one.tokens for one in below)
    source = raw + sum(one.covered_tokens for one in below)
    return _Range(first, last, raw + made, raw, source, below, whole)


def _step(
    view: View, goal: CompactionGoal, covered: _Range, *, hidden: bool
) -> CompactionStep | None:
    """The summary of a range; None where there is nothing new to take in, or too little to gain.
    `hidden`: it has no room as it is."""
    if covered.gain <= goal.floor or (not covered.raw and not hidden and len(covered.below) < 2):
        return None
    # One that had no room beside the newest step would not be shown.
    free = goal.available - HANDOFF_TOKENS - LEFT_OUT_TOKENS - least(view)
    if free <= goal.floor // 2 and not goal.force:
        return None
    most = max(goal.floor, most_of_summary(goal.available))
    target = min(max(goal.floor, summary_budget(goal.available, covered.source)), most)
    if free > goal.floor // 2:
        target = min(target, free)
    if not covered.raw:
        target = min(target, covered.gain // 2)
    return CompactionStep(
        covered.first,
        covered.last,
        max(1, min(target, covered.gain - 1)),
        replaces=tuple(one.id for one in covered.below),
        update=bool(covered.below),
        role=role_between(view, covered.first, covered.last),
    )
