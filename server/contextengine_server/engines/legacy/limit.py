"""The limit step of the legacy pipeline: the newest turns, where an operator says how many.

After OpenClaw's limitHistoryTurns (src/agents/pi-embedded-runner/history.ts), which counts messages
of users from the end and cuts by whole batches: what it hid stays hidden, and the beginning of a
list stays put until the next batch is full.
"""

from __future__ import annotations

from collections.abc import Set

from contextengine_server.context.layout import Range
from contextengine_server.context.view import View

from .options import LegacyOptions

RULE = "older than the history limit"
SLACK = 1.5
"""Nothing is cut while there are no more turns than so many times the limit."""


def limit_of(view: View, options: LegacyOptions) -> int:
    """How many of the newest turns are shown; 0: all."""
    return options.history_limit_overrides.get(view.channel, options.history_limit)


def hidden_turns(turns: int, limit: int) -> int:
    """How many of the oldest turns are not shown."""
    if limit <= 0:
        return 0
    most = -int(-SLACK * limit // 1)  # rounded up
    batch = most - limit + 1
    return max(0, turns - limit) // batch * batch


def hidden(view: View, options: LegacyOptions, beats: Set[int] = frozenset()) -> range:
    """The steps that are not shown: of the oldest turns. What stands before the first of them, and
    the summaries, stay. `beats`: the first steps of turns that do not count."""
    limit = limit_of(view, options)
    # Of what is not in memory nothing is hidden; the legacy engine holds all.
    if not limit or len(view.users) < view.fold.turns:
        return range(0)
    turns = [step for step in view.users if step not in beats] if beats else view.users
    gone = hidden_turns(len(turns), limit)
    return range(turns[0], turns[gone]) if gone else range(0)


def within(ranges: list[Range], gone: range) -> list[Range]:
    """The ranges without these steps."""
    kept = list[Range]()
    for first, last in ranges:
        if first < gone.start:
            kept.append((first, min(last, gone.start - 1)))
        if last >= gone.stop:
            kept.append((max(first, gone.stop), last))
    return kept
