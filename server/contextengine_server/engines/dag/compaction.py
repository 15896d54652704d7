"""What `dag` summarizes next: the oldest raw history outside the tail, on safe cut points; or a run
of summaries that take more room than they may."""

from __future__ import annotations

from contextengine_server.context.lawful import SCRAP, fitting, least, settled_room
from contextengine_server.context.layout import uncovered
from contextengine_server.context.view import View

from ..contract import CompactionGoal, CompactionStep, NothingToDo
from .condensation import next_fold
from .options import DagOptions
from .sizes import Shares, limit_of, shares_of, used_of

CLAUSE = 39
"""What the uncertainty clause costs at most, in any encoding shipped. It is paid from the budget
once a summary is shown."""
WORDS = 24
"""What it costs at most to say that something is left out: kept free once a session is larger than
its budget."""
SMALL_BITE = 0.05
"""A compaction that reached what it was asked for goes on to its low-water mark where that is
further than this share of the budget."""


def due(view: View, available: int, measured: int | None, options: DagOptions) -> bool:
    """True above the threshold, or where summaries take more than their room or raw history is
    evicted; and where there is something to take."""
    used = max(used_of(view, available), measured or 0)
    wanted = used > limit_of(view, available, options) or _left_out(view, available)
    return wanted and least(view) + SCRAP < available and has_work(view, options)


def _left_out(view: View, available: int) -> bool:
    """True where a summary has no room, or so much is neither shown nor summarized that it is worth
    a summary."""
    if not view.steps or not view.summaries:
        return False  # whatever is evicted without them is above the threshold
    if view.fixed_tokens() - _leading(view) > settled_room(view, available):
        return True
    if not any(view.evictions.evicting(available)):
        return False
    shown = fitting(view, available)
    hidden = {step for first, last in uncovered(view) for step in range(first, last + 1)} - {
        step for first, last in shown.ranges for step in range(first, last + 1)
    }
    tokens = sum(
        view.atom(step).tokens for step in hidden - set(view.must_stay()) if view.holds(step)
    )
    return tokens > SCRAP or len(shown.summaries) < len(view.summaries)


def _leading(view: View) -> int:
    return sum(view.atom(step).tokens for step in range(view.leading))


def has_work(view: View, options: DagOptions) -> bool:
    """True where raw history lies outside the tail, or summaries can be folded; the window need not
    hold any of it."""
    if not view.steps:
        return False
    tail = view.steps - 1
    stays = set(view.must_stay())
    return len(view.summaries) > 1 or any(
        step not in stays
        for first, last in uncovered(view)
        for step in range(first, min(last, tail - 1, first + len(stays)) + 1)
    )


def next_step(
    view: View, goal: CompactionGoal, options: DagOptions
) -> CompactionStep | NothingToDo:
    """The next summary, or why there is none.

    Summaries are folded before the next leaf where they and the leaf would take more than their
    room.
    """
    if not view.steps:
        return NothingToDo("nothing to compact")
    used = max(used_of(view, goal.available), goal.measured or 0)
    left_out = _left_out(view, goal.available)
    below = not goal.force and used <= limit_of(view, goal.available, options)
    if below and not left_out and not goal.reached:
        return NothingToDo("below threshold")
    shares = shares_of(view, goal, options)
    if goal.reached and not left_out and shares.take < SMALL_BITE * goal.available:
        return NothingToDo("already under target")
    leaf = _leaf(view, shares, goal, options)
    coming = leaf.target_tokens if leaf is not None else 0
    fold = None
    if shares.settled + coming > shares.settled_room:
        fold = next_fold(view, shares, coming, options, goal.floor)
    return (
        fold or leaf or NothingToDo("already compacted" if view.summaries else "nothing to compact")
    )


def _leaf(
    view: View, shares: Shares, goal: CompactionGoal, options: DagOptions
) -> CompactionStep | None:
    """The next summary of messages, in parts of one size where one of it all would be too large."""
    most = options.leaf_chunk_tokens
    if goal.capacity is not None:
        most = max(1, min(most, goal.capacity))  # a model may have no room at all
    source = -(-shares.take // max(1, -(-shares.take // most)))
    chunk = _chunk(view, shares.tail, goal.floor, source, max(most, goal.floor + 1))
    if chunk is None:
        return None
    first, last, tokens = chunk
    before = [summary for summary in view.summaries if summary.last_step < first]
    target = max(int(shares.density * tokens), min(goal.floor * 2, tokens // 2))
    # One that had no room beside the newest step would not be shown.
    free = goal.available - CLAUSE - WORDS - least(view)
    if free <= goal.floor // 2 and not goal.force:
        return None
    if free > goal.floor // 2:
        target = min(target, free)
    if options.leaf_target_tokens is not None:
        target = min(target, max(options.leaf_target_tokens, goal.floor))
    return CompactionStep(
        first, last, min(target, tokens - 1), previous=before[-1].text if before else ""
    )


def _chunk(
    view: View, tail: int, floor: int, wanted: int, most: int
) -> tuple[int, int, int] | None:
    """The oldest steps outside the tail that no summary covers, so many tokens of them as are
    wanted and no more than `most`: (first, last, tokens to gain).

    What gains no more than the floor is passed over, so that a scrap between two summaries does not
    end all compaction. The newest user message parts it: what was done for it comes behind it.
    """
    never = set(view.must_stay())
    for run_first, run_last in uncovered(view):
        first, last, gain = -1, -1, 0
        for step in range(run_first, min(run_last, tail - 1) + 1):
            if step in never:
                if step == view.user_step and gain > max(floor, SCRAP):
                    break
                if step == view.user_step:
                    first, last, gain = -1, -1, 0
                continue
            if not view.holds(step):
                break
            cost = view.atom(step).tokens
            if gain > floor and (gain >= wanted or gain + cost > most):
                break
            first, last, gain = (step if first < 0 else first), step, gain + cost
        if gain > floor:
            return first, last, gain
    return None
