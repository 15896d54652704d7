"""What the compressor summarizes next: all between the head and the tail, into the one summary that
there is.

The summary is brought up to date: the next one is made of it and of what came since, and stands
for all of that. So there is one, of the newest state, and it is state of the store: nothing is read
from the text of messages.
"""

from __future__ import annotations

import msgspec

from contextengine_server.context.lawful import SCRAP, least
from contextengine_server.context.layout import uncovered
from contextengine_server.context.view import Summary, View

from ..base import LEFT_OUT_TOKENS
from ..contract import CompactionGoal, CompactionStep, NothingToDo
from .forms import coming_forms, forms_now
from .options import CompressorOptions
from .plan import fitted
from .sizes import most_of_summary, summary_budget, threshold_of
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


def used_of(view: View, available: int, options: CompressorOptions) -> int:
    """The view's tokens, messages in other forms counted as they are shown."""
    return view.view_tokens() - sum(forms_now(view, available, options).saved.values())


def due(view: View, available: int, measured: int | None, options: CompressorOptions) -> bool:
    """True from the threshold on, or where something has no room; and where there is something to
    take."""
    if not options.enabled or not view.steps:
        return False
    used = max(used_of(view, available, options), measured or 0)
    wanted = (
        used >= threshold_of(available, options) or lacking_of(view, available, options).matters
    )
    return wanted and least(view) + SCRAP < available and _has_work(view)


def _has_work(view: View) -> bool:
    """True where something before the newest step is uncovered; the window need not hold it."""
    stays = set(view.must_stay())
    return any(
        step not in stays
        for first, last in uncovered(view)
        for step in range(first, min(last, view.steps - 2, first + len(stays)) + 1)
    )


def lacking_of(view: View, available: int, options: CompressorOptions) -> Lacking:
    """What has no room. Nothing where there are no summaries: whatever is left out without them is
    above the threshold."""
    if not view.summaries or not any(view.evictions.evicting(available)):
        return Lacking()
    shown = fitted(view, available, available, forms_now(view, available, options).saved, options)
    there = {step for first, last in shown.ranges for step in range(first, last + 1)}
    there.update(view.must_stay())
    raw = sum(
        view.atom(step).tokens
        for first, last in uncovered(view)
        for step in range(first, last + 1)
        if step not in there and view.holds(step)
    )
    return Lacking(raw, len(shown.summaries) < len(view.summaries))


def next_step(
    view: View, goal: CompactionGoal, options: CompressorOptions
) -> CompactionStep | NothingToDo:
    """The next summary, or why there is none."""
    if not view.steps:
        return NothingToDo("nothing to compact")
    limit = threshold_of(goal.available, options)
    used = max(used_of(view, goal.available, options), goal.measured or 0)
    lacking = lacking_of(view, goal.available, options)
    if goal.reached and not lacking.matters:
        return NothingToDo("already under target")
    if not goal.force and used < limit and not lacking.matters:
        return NothingToDo("below threshold")
    # What has no room is not shown any more: it is summarized even where it stands in the head.
    crowded = lacking.matters or used > goal.available
    behind = view.leading if crowded else head(view, goal.available, options)
    found: CompactionStep | None = None
    left = used
    low_water = int(LOW_WATER * limit)
    for number, tail in enumerate(tails(view, goal.available, options)):
        if number and left <= low_water and (found is not None or not crowded):
            break  # no need of a shorter tail
        covered = _range(view, goal, behind, tail)
        if covered is None:
            continue
        step = _step(view, goal, covered, hidden=lacking.summaries)
        if step is None:
            continue
        found = step
        left = used - covered.gain + step.target_tokens - _coming(view, covered, goal, options)
    if found is not None:
        return found
    return NothingToDo("already compacted" if view.summaries else "nothing to compact")


def _coming(view: View, covered: _Range, goal: CompactionGoal, options: CompressorOptions) -> int:
    """The tokens that other forms will save behind a summary once it is committed, besides those
    that they save now."""
    now = forms_now(view, goal.available, options).saved
    coming = coming_forms(view, goal.available, options).saved
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
    return _Range(
        first, last, raw + made, raw, raw + sum(one.covered_tokens for one in below), below
    )


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
    )
