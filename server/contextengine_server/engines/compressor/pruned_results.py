"""Large results that are shown in short before a compaction has to make room, for the sake of what
they cost (Hermes's `proactive_prune_*`).

They move at ticks: when results have grown by as much as is worth a change of the list, and the
view is as large as was said. What a tick had in short stays so over the next commit, which has all
large results in short that stand as far back by then.
"""

from __future__ import annotations

from contextengine_server.context.message import Gone, Replacement
from contextengine_server.context.view import View

from ..ticks import results_at
from .options import CompressorOptions

LEAST_ROWS = 3
"""So many of the newest messages stay as they are whatever `protect_last_n` says."""

Parts = dict[int, dict[int, Replacement]]
"""What is left out, by sequence and part."""


def newest_tick(view: View, count: int, options: CompressorOptions) -> int:
    """How many of the first `count` results in memory had come by the newest tick since the newest
    commit at which the view was large enough; 0: there was none."""
    if not options.proactive_prune_tokens:
        return 0
    at = results_at(view, count, max(1, options.proactive_prune_min_reclaim_tokens))
    if not at:
        return 0
    there = view.observations.all[at - 1]
    if there.step < view.raw_from or any(s.created > there.created for s in view.summaries):
        return 0
    # Not the view's tokens: those of a request before the summary go once another one comes.
    begin = view.summaries[-1].span_end if view.summaries else 0
    then = sum(s.tokens for s in view.summaries) + view.atom(there.step).end - begin
    return at if then >= options.proactive_prune_tokens else 0


def pruned_results(
    view: View, first: int, until: int, count: int, options: CompressorOptions
) -> Parts:
    """The large results from a step on that stood behind the protected messages at the newest
    commit, by which the steps before `until` had come, or at a tick, by which the first `count`
    results had."""
    parts = Parts()
    if not options.proactive_prune_tokens:
        return parts
    every = view.observations.all
    by_commit = _newest_before(view, until)
    by_tick = every[count - 1].sequence if count else 0
    behind = max(by_commit, by_tick) - max(LEAST_ROWS, options.protect_last_n)
    if not view.summaries:
        # The first messages stand before the first summary, where nothing is in short.
        first = max(first, view.leading + options.protect_first_n)
    for one in view.observations.between(first, view.steps):
        if one.sequence > behind:
            break
        if one.chars >= options.proactive_prune_min_result_chars and one.step < view.steps - 1:
            how = Replacement(one.part, Gone.MASKED, tool=one.tool)
            parts.setdefault(one.sequence, {})[one.part] = how
    return parts


def _newest_before(view: View, until: int) -> int:
    """The newest message in memory before a step; 0: there is none. A step may hold none of its
    own, where all that it shows was made up or came late."""
    held = (view.atom(step).entries for step in range(until - 1, view.base - 1, -1))
    return next((entries[-1].sequence for entries in held if entries), 0)
