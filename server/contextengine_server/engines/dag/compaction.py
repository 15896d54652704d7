"""What `dag` summarizes next: the oldest raw history outside the tail, on safe cut points; or a run
of summaries that take more room than they may."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from contextengine_server.context.lawful import evicted_by_now, fitting, least
from contextengine_server.context.layout import uncovered
from contextengine_server.context.settled import SCRAP, settled_room
from contextengine_server.context.view import View

from ..base import ADDITION_TOKENS, LEFT_OUT_TOKENS
from ..contract import CompactionGoal, CompactionStep, NothingToDo
from .condensation import next_fold
from .options import DagOptions
from .single import growth_of_one, keeps_one, room_of_one, taken_in
from .sizes import Savings, Shares, limit_of, shares_of

SMALL_BITE = 0.05
"""A compaction that reached what it was asked for goes on to its low-water mark where that is
further than this share of the budget."""
LEAST_LEAF = 4
"""What is left out is summarized with what follows it, up to so many times what the smallest
summary costs: a smaller one would hardly say anything."""

LEAST_SAID = 2 / 3
"""No summary is made for less than this part of what the smallest costs: what frames it is half of
that, and hardly a sentence would have room in the rest."""

QUOTED = 0.5
"""Of the room that summaries leave, a leaf may take so much for the text of files that users
named: it is worked on later, and the tail that it takes the place of would be gone by then."""
FOR_QUOTES = 0.016
"""Where it may, so much of the budget more makes way with each leaf: on average what such texts
take of the room that a compaction makes, without which the next one came sooner."""
LEAST_QUOTED = 2_000
"""In less room hardly a file fits, and nothing is kept free for one."""


def due(view: View, available: int, measured: int | None, options: DagOptions) -> bool:
    """True above the threshold, or where summaries take more than their room or something is left
    out that is worth a summary; and where there is something to take."""
    savings = Savings(view, available, options)
    used = max(savings.used, measured or 0)
    wanted = (
        used > limit_of(view, available, options) or _left_out(view, available, savings).matters
    )
    return wanted and least(view) + SCRAP < available and has_work(view, options)


class LeftOut(msgspec.Struct, frozen=True):
    """What a summary is wanted for, however many tokens the view has."""

    crowded: bool = False
    """Summaries take more than their room."""
    summaries: bool = False
    """Some of them are not shown."""
    raw: int = 0
    """Tokens of the steps that are neither shown nor summarized."""

    @property
    def matters(self) -> bool:
        """True where it is more than a scrap."""
        return self.crowded or self.summaries or self.raw > SCRAP


def _left_out(view: View, available: int, savings: Savings) -> LeftOut:
    """What has no room. Nothing where there are no summaries: whatever is evicted without them is
    above the threshold."""
    if not view.steps or not view.summaries:
        return LeftOut()
    crowded = view.fixed_tokens() - _leading(view) > settled_room(view, available)
    if not view.evictions.evicted(available):
        return LeftOut(crowded)
    shown = fitting(view, available, saved=savings.now, saved_then=savings.then)
    hidden = {step for first, last in uncovered(view) for step in range(first, last + 1)} - {
        step for first, last in shown.ranges for step in range(first, last + 1)
    }
    raw = sum(view.atom(step).tokens for step in hidden - set(view.must_stay()) if view.holds(step))
    return LeftOut(crowded, len(shown.summaries) < len(view.summaries), raw)


def _evicted(view: View, available: int, savings: Savings) -> int:
    """The tokens of the newest history that would stay evicted, were a summary committed now."""
    room = available - ADDITION_TOKENS - LEFT_OUT_TOKENS
    begin = max(view.raw_from, view.base)
    cut = evicted_by_now(view, room, lambda _: savings.now)  # of the newest commit alone
    stays = sum(view.atom(step).tokens for step in view.must_stay() if begin <= step < cut)
    return view.span(begin, cut - 1) - stays


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
    room, or where some are not shown: one that is made now may be.
    """
    if not view.steps:
        return NothingToDo("nothing to compact")
    savings = Savings(view, goal.available, options)
    used = max(savings.used, goal.measured or 0)
    left_out = _left_out(view, goal.available, savings)
    below = not goal.force and used <= limit_of(view, goal.available, options)
    if below and not left_out.matters and not goal.reached:
        return NothingToDo("below threshold")
    shares = shares_of(view, goal, options, savings)
    gone = max(left_out.raw, _evicted(view, goal.available, savings))
    idle = not (left_out.matters or gone) and shares.take < SMALL_BITE * goal.available
    if goal.reached and idle:
        return NothingToDo("already under target")
    one, take = keeps_one(view, shares, goal, options), shares.take
    if one and shares.over:
        take = min(take, shares.over + growth_of_one(view, shares, goal.available))
    elif take and shares.over and _quotable(shares) and _reads(view):
        take += int(FOR_QUOTES * goal.available)
    least_leaf = LEAST_LEAF * goal.floor if gone and not (one and view.summaries) else 0
    take = max(take, gone, least_leaf)
    leaf = None
    if take:
        hidden = left_out.summaries
        leaf = _leaf(view, shares, take, goal, options, savings.coming, one=one, hidden=hidden)
    coming = 0
    if leaf is not None:
        coming = leaf.target_tokens - sum(s.tokens for s in view.summaries if s.id in leaf.replaces)
    fold = None
    if left_out.summaries or shares.settled + coming > shares.settled_room:
        fold = next_fold(view, shares, coming, options, goal.floor)
    return (
        fold or leaf or NothingToDo("already compacted" if view.summaries else "nothing to compact")
    )


def _leaf(
    view: View,
    shares: Shares,
    take: int,
    goal: CompactionGoal,
    options: DagOptions,
    saved: Mapping[int, int],
    *,
    one: bool,
    hidden: bool,
) -> CompactionStep | None:
    """The next summary of so many tokens of messages, in parts of one size where one of them all
    would be too large; where there is `one` summary, this one made anew with them. `saved`: what
    masks will save, by step. `hidden`: what there is has no room as it is."""
    most = options.leaf_chunk_tokens
    if goal.capacity is not None:
        most = max(1, min(most, goal.capacity))  # a model may have no room at all
    source = -(-take // -(-take // most))
    floor = 0 if one and hidden else goal.floor
    chunk = _chunk(view, shares.tail, floor, source, max(most, goal.floor + 1), saved)
    if chunk is None:
        return None
    first, last, tokens = chunk
    taken = taken_in(view, first) if one else []
    if not taken and tokens <= goal.floor:
        return None
    fresh, covered = tokens, tokens + sum(summary.covered_tokens for summary in taken)
    tokens += sum(summary.tokens for summary in taken)
    first = taken[0].first_step if taken else first
    before = [summary for summary in view.summaries if summary.last_step < first]
    told = int(LEAST_SAID * goal.floor)
    target = max(int(shares.density * covered), min(goal.floor * 2, tokens // 2), told)
    if taken:
        left = room_of_one(view, shares, goal.available) - shares.settled + tokens - fresh
        target = max(told, min(left, int(shares.worth * covered)))
    # One that had no room beside the newest step would not be shown.
    free = goal.available - ADDITION_TOKENS - LEFT_OUT_TOKENS - least(view)
    if free <= told and not goal.force:
        return None
    limit = min(tokens - max(1, fresh // 5), free if free > told else tokens)
    if options.leaf_target_tokens is not None:
        limit = min(limit, max(options.leaf_target_tokens, goal.floor))
    target = min(target, limit)
    quoted = 0 if one else max(0, min(_quotable(shares), limit - target))
    return CompactionStep(
        first,
        last,
        target,
        tuple(summary.id for summary in taken),
        previous=before[-1].text if before else "",
        update=bool(taken),
        quoted_tokens=quoted,
    )


def _quotable(shares: Shares) -> int:
    """The tokens that the text of files may take in the next leaf, beside what else it says."""
    room = int(QUOTED * (shares.settled_room - shares.settled))
    return room if room >= LEAST_QUOTED else 0


def _reads(view: View) -> bool:
    """True where something is read in what no summary covers yet."""
    return any(
        read is not None
        for first, last in uncovered(view)
        for step in range(first, last + 1)
        if view.holds(step)
        for entry in view.atom(step).entries
        for read in entry.traits.reads
    )


def _chunk(
    view: View, tail: int, floor: int, wanted: int, most: int, saved: Mapping[int, int]
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
            # A masked step is no scrap: between two summaries its mask would not hold.
            tokens = view.atom(step).tokens
            cost = max(tokens - saved.get(step, 0), min(tokens, SCRAP + 1))
            if gain > floor and (gain >= wanted or gain + cost > most):
                break
            first, last, gain = (step if first < 0 else first), step, gain + cost
        if gain > floor:
            return first, last, gain
    return None
