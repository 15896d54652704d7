"""How large a leaf is: what the options say, and no more than the budget leaves for summaries
beside the tail.

A summary that does not fit beside the tail is not shown, and what it stands for is not shown
either. So where the budget is small, a leaf's target is what is free. And where more history came
at once than fits the budget, it is spread over a few leaves that fill that room: one leaf over all
of it would leave the room empty.
"""

from __future__ import annotations

import msgspec

from contextengine_server.context.budget import cell
from contextengine_server.context.view import View

from ..contract import CompactionGoal
from .options import DagOptions

CLAUSE = 39
"""What the uncertainty clause costs at most, in any encoding shipped. It is paid from the budget
once a summary is shown."""

WORDS = 24
"""What it costs at most to say that something is left out: kept free once a session is larger than
its budget, as one is whose leaves must fit."""


class LeafSize(msgspec.Struct, frozen=True):
    """Tokens of a leaf in the view."""

    source: int
    """Of what it is made of, at most."""
    target: int
    """Of the summary, with what frames its text."""


def leaf_size(view: View, goal: CompactionGoal, options: DagOptions) -> LeafSize:
    """How large the next leaf is to be."""
    source = options.leaf_chunk_tokens
    if goal.capacity is not None:
        source = max(1, min(source, goal.capacity))  # a model may have no room at all
    # The target counts what frames the text; what is left for the text is never less than the
    # smallest summary has.
    target = max(options.leaf_target_tokens, goal.floor)
    tail = view.tail_from(options.fresh_tail_turns)
    if not view.steps or not view.holds(tail):
        return LeafSize(source, target)
    kept = view.span(tail, view.steps - 1)
    kept += sum(view.atom(step).tokens for step in view.must_stay() if step < tail)
    free = _free(goal, options, kept)
    if free is None:
        return LeafSize(source, target)
    made = sum(summary.tokens for summary in view.summaries)
    left = max(1, view.view_tokens() - made - kept)
    if view.view_tokens() > goal.available:
        # As many leaves as fill the room, but no more than stay unfolded: folded text was chosen
        # from twice.
        leaves = min(_leaves(free, target), options.condensed_min_fanout - 1) - len(view.summaries)
        source = min(source, max(goal.floor + 1, -(-left // max(1, leaves))))
    # Of many leaves as many must fit as are folded into one.
    together = min(len(view.summaries) + -(-left // source), options.condensed_min_fanout)
    return LeafSize(source, max(min(target, free // together), _least(goal)))


def _free(goal: CompactionGoal, options: DagOptions, kept: int) -> int | None:
    """What is left for all summaries beside `kept` tokens: up to the threshold, so that the next
    compaction is not due at once, or else up to the budget. None: nothing worth a summary; what is
    made now is shown when there is more room."""
    room = cell(max(0, goal.available - CLAUSE)) - WORDS
    for most in (min(room, int(options.context_threshold * goal.available)), room):
        if most - kept >= _least(goal):
            return most - kept
    return None


def _leaves(free: int, target: int) -> int:
    """How many leaves of this target fill what is free. A little room more makes none: two small
    ones say less than one."""
    return max(1, round(free / target))


def _least(goal: CompactionGoal) -> int:
    """The smallest summary worth its header and footer: hardly a sentence stands in it."""
    return goal.floor // 2
