"""What the layered engine summarizes next: runs of steps that are not kept, the oldest first.

A run reaches from one kept step to the next, and has one summary: a later compaction brings it up
to date with what has come since. So all stands in the order in which it happened, and what is kept
stands where it was said. What is kept is known by where no summary lies: the engine remembers
nothing. In `linear` nothing is kept, so there is one run.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from contextengine_server.context.lawful import least, newest_within
from contextengine_server.context.settled import SCRAP, settled_room
from contextengine_server.context.view import View

from ..base import ADDITION_TOKENS, LEFT_OUT_TOKENS
from ..contract import CompactionGoal, CompactionStep, NothingToDo
from .classification import layer_of_step
from .facts import kept_between
from .forms import forms_of_view
from .options import LayeredOptions
from .plan import hidden_in
from .runs import StepRun, runs_of
from .sizes import facts_tokens, limit_of, tail_tokens, told_tokens

CHUNK = 100_000
"""The most tokens of messages that one summary takes in at a time."""
SMALL_BITE = 0.02
"""A compaction that reached what it was asked for goes on for runs of more than this share of the
limit: the layers' budgets are to bind."""
LEAST_RUN, MOST_RUNS = 0.25, 8
"""A notice of the harness's parts no run that stands for less than this share of the limit, nor for
less than its share of the history were there so many of them: else what is laid down would part a
long session into ever more summaries."""
TWICE = 2
"""A summary of more than so many times its share is made shorter where all of them take more than
they may. Where one has no room, each that takes more is."""
SETTLED = 0.8
"""Summaries, and what is kept between them, are to take no more than this share of their room: it
shrinks where a larger step comes, or a larger message of the user's."""


def due(view: View, available: int, measured: int | None, options: LayeredOptions) -> bool:
    """True above the limit, or where something has no room; and where there is something to
    take."""
    if not options.compaction.enabled or not view.steps:
        return False
    if not view.summaries and max(view.total, measured or 0) <= limit_of(available, options):
        return False
    saved = forms_of_view(view, available).saved
    used = max(view.view_tokens() - sum(saved.values()), measured or 0)
    hidden, unseen = hidden_in(view, available, saved) if view.summaries else (set[int](), False)
    wanted = used > limit_of(available, options) or unseen or bool(hidden)
    return wanted and least(view) + SCRAP < available and _has_work(view, hidden)


def _has_work(view: View, hidden: set[int]) -> bool:
    """True where something behind the summaries and before the newest step is uncovered, or has no
    room; the window need not hold it."""
    stays = set(view.must_stay())
    behind = range(max(view.raw_from, view.leading), view.steps - 1)
    return bool(hidden) or any(step not in stays for step in behind[: len(stays) + 1])


def next_step(
    view: View, goal: CompactionGoal, options: LayeredOptions
) -> CompactionStep | NothingToDo:
    """The next summary, or why there is none."""
    if not view.steps:
        return NothingToDo("nothing to compact")
    available, limit = goal.available, limit_of(goal.available, options)
    saved = forms_of_view(view, available).saved
    hidden, unseen = hidden_in(view, available, saved)
    crowded = unseen or bool(hidden)
    used = max(view.view_tokens() - sum(saved.values()), goal.measured or 0)
    if not goal.force and not goal.reached and used <= limit and not crowded:
        return NothingToDo("below threshold")
    least_raw = SMALL_BITE * limit if goal.reached and not crowded else 0
    waiting = view.unanswered
    tail = min(newest_within(view, tail_tokens(available, options), view.raw_from), waiting)
    ways = [(tail, _kept(view, goal, hidden, options))]
    if not goal.reached and (goal.force or crowded or used > limit):
        ways.append((waiting, ways[0][1]))
    if unseen:
        ways.append((waiting, _fewer(view, ways[0][1], goal)))
    for behind, kept in ways:
        runs = runs_of(view, behind, kept, _most(goal), _least(view, limit))
        step = _of_runs(view, goal, runs, _Pressure(unseen, least_raw), options)
        if step is not None:
            return step
    if goal.reached:
        return NothingToDo("already under target")
    return NothingToDo("already compacted" if view.summaries else "nothing to compact")


class _Pressure(msgspec.Struct, frozen=True):
    """What a compaction is for, besides what it was asked for."""

    unseen: bool
    """A summary has no room."""
    least_raw: float
    """No run is worth a summary for no more raw tokens than this."""


def _fewer(view: View, kept: Callable[[int], bool], goal: CompactionGoal) -> Callable[[int], bool]:
    """Keeps nothing of the older half of what is kept: summaries have no room beside all of it."""
    runs = runs_of(view, view.steps - 1, kept, _most(goal), 0)
    first = runs[(len(runs) + 1) // 2].first if len(runs) > 1 else view.steps
    return lambda step: step >= first and kept(step)


def _most(goal: CompactionGoal) -> int:
    return CHUNK if goal.capacity is None else max(1, min(CHUNK, goal.capacity))


def _least(view: View, limit: int) -> int:
    """The tokens of the least run that a notice parts. It grows by doubling, so that runs are
    joined seldom."""
    return max(int(LEAST_RUN * limit), (1 << view.total.bit_length() >> 1) // MOST_RUNS)


def _kept(
    view: View, goal: CompactionGoal, hidden: set[int], options: LayeredOptions
) -> Callable[[int], bool]:
    """Tells the steps that stay as they are. What has no room is not shown any more: it is
    summarized, whatever its worth. The newest request stays while it is that, and is to stand where
    it was made afterwards, until the next compaction."""

    def kept(step: int) -> bool:
        if options.linear or step in hidden:
            return False
        if step == view.user_step:
            return True
        layer = layer_of_step(goal.said(entry) for entry in view.atom(step).entries)
        return options.strategy_of(layer) == "keep"

    return kept


def _of_runs(
    view: View,
    goal: CompactionGoal,
    runs: list[StepRun],
    pressure: _Pressure,
    options: LayeredOptions,
) -> CompactionStep | None:
    """The summary of the first of these runs that is worth one: of what no summary tells yet;
    where there is no room for that, of several that are to be one, or of one that takes more than
    its share."""
    room = max(goal.floor, int(SETTLED * settled_room(view, goal.available)) - kept_between(view))
    most = min(told_tokens(options) + facts_tokens(options), room)
    source = sum(run.source for run in runs)
    shares = [max(goal.floor, most * run.source // max(1, source)) for run in runs]
    untold = [run.raw > pressure.least_raw for run in runs]
    made = sum(summary.tokens for summary in view.summaries)
    coming = sum(goal.floor for run, new in zip(runs, untold, strict=True) if new and not run.below)
    crowded = pressure.unseen or made + coming > most
    large = 1 if pressure.unseen or coming else TWICE
    several = [crowded and len(run.below) > 1 for run in runs]
    longer = [crowded and run.told > large * s for run, s in zip(runs, shares, strict=True)]
    # Room is made first: of a new summary in a full room an older one would go.
    wanted = [several, longer, untold] if crowded else [untold]
    for each in wanted:
        for run, share, good in zip(runs, shares, each, strict=True):
            step = _summary(view, goal, run, share) if good else None
            if step is not None:
                return step
    return None


def _summary(view: View, goal: CompactionGoal, run: StepRun, share: int) -> CompactionStep | None:
    """The summary of a run in its share; None where too little is gained."""
    if run.gain <= goal.floor:
        return None
    # One that had no room beside the newest step would not be shown.
    free = goal.available - ADDITION_TOKENS - LEFT_OUT_TOKENS - least(view)
    if free <= goal.floor // 2 and not goal.force:
        return None
    target = min(share, max(goal.floor, run.gain // 2))
    if free > goal.floor // 2:
        target = min(target, free)
    return CompactionStep(
        run.first,
        run.last,
        max(1, min(target, run.gain - 1)),
        replaces=tuple(summary.id for summary in run.below),
        update=bool(run.below),
    )
