"""Condensed summaries: which run of neighbouring summaries is made anew as one that takes less.

Summaries are folded once they would take more than their room, from the oldest on, and no more of
them than give room for what comes. Only those of one depth are folded together, as in lossless-claw
(src/compaction.ts), so nodes of one depth stay alike. What was folded stays below its parent and
can be expanded.
"""

from __future__ import annotations

from collections.abc import Iterator

from contextengine_server.context.view import Summary, View

from ..contract import CompactionStep
from .options import DagOptions
from .sizes import REFOLD, Shares

GAIN = 0.8
"""A fold takes no more than this share of what it replaces: else it is no use to begin anew."""
LEFT = 0.5
"""And no less than this share where it is worth as much: what is said fades, and goes at no one
fold."""
FEWEST = 2
"""So many are folded where no run is as long as the option says, as with lossless-claw's
condensedMinFanoutHard (src/db/config.ts): summaries without room would be shown no more."""
ALONE = 1
"""Where none of them may be joined, because the newest user message stands between them or there is
no other, the oldest is made anew by itself."""


def next_fold(
    view: View, shares: Shares, coming: int, options: DagOptions, floor: int
) -> CompactionStep | None:
    """The next condensed summary, or None where none helps. `coming`: tokens of the leaf that room
    is made for."""
    density = min(shares.worth, REFOLD * shares.settled_room / max(1, shares.covered + shares.take))
    free = int((1 - REFOLD) * shares.settled_room)
    free = max(
        shares.settled + coming - shares.settled_room,
        min(free, shares.over or free),  # more would only lie idle
    )
    fanouts = (options.condensed_min_fanout, FEWEST)
    # What is folded to less than its share would be told in fewer words than all the rest. Depths
    # are mixed only where nothing else gives the room.
    ways = [(fanout, True, fairly) for fairly in (True, False) for fanout in fanouts]
    ways += [(FEWEST, False, True), (FEWEST, False, False)]
    if coming:
        ways.append((ALONE, True, False))
    for fanout, alike, fairly in ways:
        for run in _runs(view, alike):
            step = _fold_of(view, run, density, free, fanout, floor, options, fairly)
            if step is not None:
                return step
    return None


def _fold_of(
    view: View,
    run: list[Summary],
    density: float,
    free: int,
    fanout: int,
    floor: int,
    options: DagOptions,
    fairly: bool,
) -> CompactionStep | None:
    """The fold of the oldest of a run, at least so many, or None where it is too short or they gain
    too little; `fairly`: or where their share of the room would take more than may be left."""
    part = _part(run, density, free, fanout, 2 * floor)
    tokens = sum(summary.tokens for summary in part)
    target = int(density * sum(summary.covered_tokens for summary in part))
    if fairly and tokens - target < free:
        return None
    target = max(floor, min(target, max(tokens - free, int(LEFT * tokens))))
    if options.condensed_target_tokens is not None:
        target = min(target, max(floor, options.condensed_target_tokens))
    if len(part) < fanout or target > GAIN * tokens:
        return None
    first = part[0].first_step
    earlier = [summary for summary in view.summaries if summary.last_step < first]
    return CompactionStep(
        first,
        part[-1].last_step,
        target,
        replaces=tuple(summary.id for summary in part),
        depth=max(summary.depth for summary in part) + 1,
        previous=earlier[-1].text if earlier else "",
    )


def _runs(view: View, alike: bool) -> Iterator[list[Summary]]:
    """Neighbours of one depth that one summary may stand for: between them lies nothing but pinned
    messages, which no summary stands for, and what is in memory and may be covered with them."""
    run: list[Summary] = []
    for summary in view.summaries:
        last = run[-1] if run else summary
        if (alike and last.depth != summary.depth) or not may_join(
            view, last.last_step + 1, summary.first_step
        ):
            yield run
            run = []
        run.append(summary)
    if run:
        yield run


def may_join(view: View, first: int, following: int) -> bool:
    """True where one summary may stand for what lies on both sides of these steps, and for them:
    all of them are in memory, and none is the newest user message."""
    return not first <= view.user_step < following and all(
        view.holds(step) for step in range(first, following)
    )


def _part(
    run: list[Summary], density: float, free: int, least: int, worthwhile: int
) -> list[Summary]:
    """The oldest of the run that give so much room when they are made anew at this density: at
    least so many of them, and for a summary of so many tokens that it says something."""
    part: list[Summary] = []
    target = 0
    for summary in run:
        if len(part) >= least and free <= 0 and target >= worthwhile:
            break
        part.append(summary)
        made = int(density * summary.covered_tokens)
        free, target = free - summary.tokens + made, target + made
    return part
