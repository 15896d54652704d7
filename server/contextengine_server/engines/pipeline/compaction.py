"""What the pipeline summarizes next: the middle, between the first turns and the newest history.

After Comis's (packages/agent/src/context-engine/llm-compaction.ts): at 85 %, no sooner than some
turns after the last time while everything fits. It summarizes down to half of the budget, which
makes room for many turns at once.
"""

from __future__ import annotations

from collections.abc import Mapping

from contextengine_server.context.lawful import evicted_by_now, least, newest_within
from contextengine_server.context.layout import uncovered
from contextengine_server.context.settled import SCRAP
from contextengine_server.context.view import Summary, View

from ..base import ADDITION_TOKENS, LEFT_OUT_TOKENS
from ..contract import CompactionGoal, CompactionStep, NothingToDo
from . import window
from .forms import Shaping
from .options import PipelineOptions
from .plan import fitted

THRESHOLD = 0.85
"""The share of the budget for messages above which a compaction is due, as in Comis."""
KEEP, KEEP_FORCED = 0.5, 0.15
"""A compaction leaves so much of the newest history as it is; one that is forced, less."""
SETTLED = 0.3
"""Summaries may take this share of the budget together."""
DENSITY = 0.25
"""A summary may take this share of what it covers."""
CHUNK = 40_000
"""The most tokens of messages that one summary is made of at a time."""
FANOUT = 4
"""So many summaries are folded into one, if there was room for them all the same."""
SMALL_BITE = 0.05
"""A compaction that reached what it was asked for goes on only for more than this share."""
NEXT_STEP = 8
"""No cooldown holds where the largest step there was would not fit any more, or this part (an
eighth) of the budget."""


def used_of(view: View, available: int, options: PipelineOptions) -> int:
    """The tokens that would be shown if there were room for all that the window holds."""
    saved = Shaping(view, available, options).now().saved
    gone = window.hidden(view, available, options)
    tokens = view.view_tokens() - sum(saved[step] for step in saved if step not in gone)
    if not gone:
        return tokens
    hidden = [
        (max(first, gone.start, view.base), min(last, gone.stop - 1))
        for first, last in uncovered(view)
    ]
    tokens -= sum(view.span(first, last) for first, last in hidden)
    return tokens + sum(
        view.atom(step).tokens
        for step in view.must_stay()
        if any(first <= step <= last for first, last in hidden)
    )


def due(view: View, available: int, measured: int | None, options: PipelineOptions) -> bool:
    """True above the threshold once the cooldown is over, or where something has no room; and where
    there is something to take."""
    used = max(used_of(view, available, options), measured or 0)
    room = available - min(view.fold.step_peak, available // NEXT_STEP)
    evicted = _left_out(view, available, options)
    crowded = used > room or evicted > 0
    if not crowded and (used <= THRESHOLD * available or _cooling(view, options)):
        return False
    goal = CompactionGoal(available, measured=measured)
    return least(view) + SCRAP < available and (
        len(view.summaries) > 1
        or _unread(view)
        or _chunk(view, goal, 1, evicted, options) is not None
    )


def _unread(view: View) -> bool:
    """True where the window does not hold what no summary covers: what it is worth is seen when it
    is read."""
    stays = set(view.must_stay())
    return any(
        step not in stays and not view.holds(step)
        for first, last in uncovered(view)
        for step in range(first, min(last, first + len(stays)) + 1)
    )


def next_step(
    view: View, goal: CompactionGoal, options: PipelineOptions
) -> CompactionStep | NothingToDo:
    """The next summary, or why there is none."""
    if not view.steps:
        return NothingToDo("nothing to compact")
    used = max(used_of(view, goal.available, options), goal.measured or 0)
    below = used <= THRESHOLD * goal.available
    left_out = _left_out(view, goal.available, options)
    if below and not goal.force and not left_out and not goal.reached:
        return NothingToDo("below threshold")
    fold = _fold(view, goal, crowded=left_out > 0)
    if fold is not None:
        return fold
    least_gain = int(SMALL_BITE * goal.available) if goal.reached and not left_out else 0
    leaf = _leaf(view, goal, max(goal.floor, least_gain), left_out, options)
    if leaf is None and goal.reached:
        return NothingToDo("already under target")
    return leaf or NothingToDo("already compacted" if view.summaries else "nothing to compact")


def _left_out(view: View, available: int, options: PipelineOptions) -> int:
    """Where a summary has no room, or so much is neither shown nor summarized nor before the window
    that it is worth a summary: the first step of the newest history that is shown. Else 0."""
    if not view.summaries or not view.evictions.evicted(available):
        return 0
    shaping = Shaping(view, available, options)
    saved = shaping.now().saved
    shown = fitted(view, available, saved, shaping)
    there = {step for first, last in shown.ranges for step in range(first, last + 1)}
    there.update(view.must_stay())
    gone = window.hidden(view, available, options)
    hidden = sum(
        view.atom(step).tokens
        for first, last in uncovered(view)
        for step in range(first, last + 1)
        if step not in there and step not in gone and view.holds(step)
    )
    if hidden <= SCRAP and len(shown.summaries) == len(view.summaries):
        return 0
    return shown.ranges[-1][0] if shown.ranges else max(view.steps - 1, 1)


def _cooling(view: View, options: PipelineOptions) -> bool:
    """True where fewer turns than the cooldown began since the newest summary."""
    if not view.summaries:
        return False
    since = max(summary.created for summary in view.summaries)
    turns = view.users[-options.compaction_cooldown_turns :]
    if len(turns) < options.compaction_cooldown_turns or not view.holds(turns[0]):
        return True
    return view.atom(turns[0]).entries[0].created < since


def _leaf(
    view: View, goal: CompactionGoal, least_gain: int, evicted: int, options: PipelineOptions
) -> CompactionStep | None:
    """The next summary of messages; what lies before the step `evicted` is, whatever stays."""
    chunk = _chunk(view, goal, least_gain, evicted, options)
    if chunk is None:
        return None
    first, last, tokens = chunk
    target = max(int(DENSITY * tokens), min(goal.floor * 2, tokens // 2))
    target = min(target, max(goal.floor, int(SETTLED * goal.available)))
    # One that had no room beside the newest step would not be shown.
    free = goal.available - ADDITION_TOKENS - LEFT_OUT_TOKENS - least(view)
    if free <= goal.floor // 2 and not goal.force:
        return None
    if free > goal.floor // 2:
        target = min(target, free)
    before = [summary for summary in view.summaries if summary.last_step < first]
    previous = before[-1].text if before else ""
    return CompactionStep(first, last, min(target, tokens - 1), previous=previous)


def _chunk(
    view: View, goal: CompactionGoal, least_gain: int, evicted: int, options: PipelineOptions
) -> tuple[int, int, int] | None:
    """The oldest steps between the first turns and the newest history that no summary covers:
    (first, last, tokens to gain). The newest user message parts it: what was done for it comes
    behind it."""
    saved = Shaping(view, goal.available, options).now().saved
    never, tail = set(view.must_stay()), max(_tail(view, goal, saved), evicted)
    anchors = _anchored(view, goal, saved, options)
    most = max(1, min(CHUNK, goal.capacity)) if goal.capacity is not None else CHUNK
    for run_first, run_last in uncovered(view):
        first, last, gain, read = -1, -1, 0, 0
        for step in range(max(run_first, anchors), min(run_last, tail - 1) + 1):
            if step in never:
                # What is left out here would lie between two summaries, where no mask holds.
                if step == view.user_step and gain > max(goal.floor, SCRAP):
                    break
                if step == view.user_step:
                    first, last, gain, read = -1, -1, 0, 0
                continue
            if not view.holds(step):
                break
            # A summarizer reads what is shown in short whole; no summary may be longer than that.
            whole = view.atom(step).tokens
            shown = whole - saved.get(step, 0)
            if gain > min(least_gain, goal.floor) and read + whole > max(most, least_gain + 1):
                break
            first, last = (step if first < 0 else first), step
            gain, read = gain + shown, read + whole
        if gain > least_gain:
            return first, last, gain
    return None


def _anchored(
    view: View, goal: CompactionGoal, saved: Mapping[int, int], options: PipelineOptions
) -> int:
    """The step behind the first turns, which a compaction leaves as well. Where something was
    evicted for want of room they went first, and are not shown any more: they are like the rest."""
    anchored = window.anchored(view, goal.available, options)
    if anchored > view.leading and (
        view.evictions.evicted(goal.available)
        or evicted_by_now(view, goal.available, lambda _: saved) > view.raw_from
    ):
        return view.leading
    return anchored


def _tail(view: View, goal: CompactionGoal, saved: Mapping[int, int]) -> int:
    """The first of the newest steps that stay as they are; never less than the newest."""
    stays = sum(view.atom(step).tokens for step in view.must_stay())
    made = sum(summary.tokens for summary in view.summaries)
    keep = (KEEP_FORCED if goal.force else KEEP) * goal.available
    more = max(0, (goal.measured or 0) - (view.view_tokens() - sum(saved.values())))
    return newest_within(view, max(0, int(keep) - stays - made - more), view.raw_from, saved)


def _fold(view: View, goal: CompactionGoal, *, crowded: bool) -> CompactionStep | None:
    """All neighbouring summaries as one, where there are many or they take more than their room."""
    room = int(SETTLED * goal.available)
    crowded = crowded or sum(summary.tokens for summary in view.summaries) > room
    for run in _runs(view):
        tokens = sum(summary.tokens for summary in run)
        if len(run) < (2 if crowded else FANOUT):
            continue
        target = max(goal.floor, min(tokens // 2, room // 2))
        if target >= tokens:
            continue
        return CompactionStep(
            run[0].first_step,
            run[-1].last_step,
            target,
            replaces=tuple(summary.id for summary in run),
            depth=max(summary.depth for summary in run) + 1,
        )
    return None


def _runs(view: View) -> list[list[Summary]]:
    """Neighbours that one summary may stand for: what lies between them is in memory, and is not
    the newest user message."""
    runs: list[list[Summary]] = []
    for summary in view.summaries:
        between = range(runs[-1][-1].last_step + 1, summary.first_step) if runs else range(0)
        if runs and view.user_step not in between and all(map(view.holds, between)):
            runs[-1].append(summary)
        else:
            runs.append([summary])
    return runs
