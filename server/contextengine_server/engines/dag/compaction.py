"""What `dag` summarizes next: the oldest chunk of raw history outside the tail, on safe cut points;
or a run of summaries."""

from __future__ import annotations

from contextengine_server.context.layout import uncovered
from contextengine_server.context.view import View

from ..contract import CompactionGoal, CompactionStep, NothingToDo
from .condensation import can_fold, crowded, next_fold
from .options import DagOptions
from .sizes import leaf_size


def has_work(view: View, options: DagOptions) -> bool:
    """True where raw history lies outside the tail, or summaries can be folded; the window need not
    hold any of it."""
    tail = view.tail_from(options.fresh_tail_turns)
    stays = set(view.must_stay())
    return can_fold(view, options) or any(
        step not in stays
        for first, last in uncovered(view)
        for step in range(first, min(last, tail - 1, first + len(stays)) + 1)
    )


def next_step(
    view: View, goal: CompactionGoal, options: DagOptions
) -> CompactionStep | NothingToDo:
    """The next summary, or why there is none.

    Summaries are folded before the next leaf once they are crowded; and where no leaf is left, as
    far as that goes.
    """
    if goal.reached:
        fold = (
            next_fold(view, options, goal.floor) if crowded(view, goal.available, options) else None
        )
        return fold or NothingToDo("already under target")
    used = max(view.view_tokens(), goal.measured or 0)
    if not goal.force and used <= options.context_threshold * goal.available:
        return NothingToDo("below threshold")
    fold = next_fold(view, options, goal.floor)
    if fold is not None and crowded(view, goal.available, options):
        return fold
    size = leaf_size(view, goal, options)
    chunk = _chunk(view, options, goal.floor, size.source)
    if chunk is None:
        return fold or NothingToDo("already compacted" if view.summaries else "nothing to compact")
    first, last, tokens = chunk
    before = [summary for summary in view.summaries if summary.last_step < first]
    target = min(size.target, tokens - 1)
    return CompactionStep(first, last, target, previous=before[-1].text if before else "")


def _chunk(view: View, options: DagOptions, floor: int, most: int) -> tuple[int, int, int] | None:
    """The oldest steps outside the tail that no summary covers, up to `most` tokens: (first, last,
    tokens to gain).

    What gains no more than the floor is passed over, so that a scrap between two summaries does not
    end all compaction. The newest user message may be covered, though it is shown until there is a
    newer one: else it would be left over as a scrap.
    """
    tail = view.tail_from(options.fresh_tail_turns)
    stays = set(view.must_stay())
    never = {*range(view.leading), *view.pinned}
    for run_first, run_last in uncovered(view):
        run = range(run_first, min(run_last, tail - 1) + 1)
        first = next((step for step in run if step not in never), None)
        if first is None or not view.holds(first):
            continue
        last, gain = first, 0
        for step in range(first, run.stop):
            if not view.holds(step):
                break
            cost = 0 if step in stays else view.atom(step).tokens
            if gain > floor and gain + cost > most:
                break
            last, gain = step, gain + cost
        while last in never:
            last -= 1
        if gain > floor:
            return first, last, gain
    return None
