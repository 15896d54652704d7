"""The history window: the newest turns, and the first ones, which a compaction leaves as well.

After Comis's (packages/agent/src/context-engine/history-window.ts), which cuts anew at each turn.
It moves here by several turns at a time, so that the beginning stays put between. What it hid stays
hidden, whatever is summarized.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from contextengine_server.context.budget import cell
from contextengine_server.context.layout import Range
from contextengine_server.context.view import View

from .options import PipelineOptions

BLOCKS = 3
"""The window moves by this part (a third) of its turns."""
ANCHORS = 0.1
"""First turns that take more than this share of the budget are treated like the rest."""
RULE = "older than the history window"


def hidden(view: View, budget: int, options: PipelineOptions) -> range:
    """The steps that the window hides, of what no summary covers: those behind the first turns and
    before the newest."""
    turns = options.history_turn_overrides.get(view.channel, options.history_turns)
    block = max(1, turns // BLOCKS)
    gone = (view.fold.turns - turns) // block * block
    shown = view.fold.turns - gone
    in_memory = len(view.users) - bisect_left(view.users, view.base)
    if gone <= 0 or shown > in_memory:
        return range(0)
    first = anchored(view, budget, options)
    return range(first, max(first, view.users[-shown]))


def anchored(view: View, budget: int, options: PipelineOptions) -> int:
    """The step behind the first turns, which stay as they are: no layer touches them, and no
    compaction. Where they take more than their share of the budget, that behind what leads: for
    good, since they only grow."""
    turns = options.compaction_prefix_anchor_turns
    if not turns or len(view.users) < view.fold.turns:
        return view.leading  # what is not in memory needs no care
    end = view.users[turns] if turns < len(view.users) else view.steps
    if end < view.base:
        return end
    begins = view.atom(view.leading - 1).end if view.leading else 0
    tokens = (view.atom(end).start if end < view.steps else view.total) - begins
    return end if tokens <= ANCHORS * cell(budget) else view.leading


def within(ranges: Sequence[Range], gone: range) -> list[Range]:
    """The ranges without these steps."""
    kept = []
    for first, last in ranges:
        if first < gone.start:
            kept.append((first, min(last, gone.start - 1)))
        if last >= gone.stop:
            kept.append((max(first, gone.stop), last))
    return kept if gone else [*ranges]
