"""When masks and evictions move: each time results have grown by so many tokens, and not between.

A tick follows from the sum of all results there were, which the fold carries; so it is found by one
look-up, and a restart changes nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from contextengine_server.context.view import View

from .options import PipelineOptions

CHARS_A_TOKEN = 3.5
"""As Comis counts (packages/agent/src/context-engine/constants.ts)."""
RESULTS_COUNT = 2
"""Characters of results count twice there."""


def interval(options: PipelineOptions) -> int:
    """How many tokens of results lie between two ticks."""
    trigger = options.observation_trigger_chars
    chars = trigger - options.observation_deactivation_chars
    if chars <= 0:
        chars = trigger // 3
    return int(chars / CHARS_A_TOKEN / RESULTS_COUNT)


def results_at(view: View, count: int, options: PipelineOptions) -> int:
    """Of the first `count` results in memory those that had come by the newest tick of then."""
    every, sums = interval(options), view.observations.sums
    if not count:
        return 0
    before = _before(view)
    at = (before + sums[count - 1]) // every * every - before
    return bisect_left(sums, at, 0, count) + 1 if at > 0 else 0


def earlier(view: View, at: int, options: PipelineOptions) -> Iterator[tuple[int, int]]:
    """The moments just before each tick in memory, the newest first: how many results there were,
    and how many of them by the tick before. `at`: those by the newest tick."""
    while at:
        there = at - 1
        at = results_at(view, there, options)
        yield there, at


def _before(view: View) -> int:
    """The tokens of the results before those in memory."""
    sums = view.observations.sums
    return view.fold.observed - (sums[-1] if sums else 0)
