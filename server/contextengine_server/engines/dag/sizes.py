"""How a budget is shared: what summaries may take, how much raw history stays beside them, and how
large the next summary is.

All of it are shares of the budget and of the session, so that the room is used whatever their size.
A summary says as much of what it covers as is worth it: what people wrote nearly whole, of what
tools answered little. So a long talk is shown as large summaries and a short tail, and a session of
tool calls as small summaries and much of its newest history as it was.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from contextengine_server.context.atom import Atom
from contextengine_server.context.budget import cell
from contextengine_server.context.lawful import settled_room
from contextengine_server.context.message import Entry
from contextengine_server.context.view import View

from ..bounds import bounds_of
from ..contract import CompactionGoal
from .options import DagOptions

BITE_STEPS = 24
"""A compaction makes room for so many more steps like the newest: each one makes the list begin
anew, which costs as much as many steps that only add to it."""
LEAST_BITE, MOST_BITE = 0.08, 0.28
"""The shares of the budget that this room is held to, so that the budget is used as well."""
TAIL_SHARE = 0.15
"""The newest steps that no compaction touches take no more than this share of the budget."""
LEAST_SETTLED, SETTLED_BY_WORTH = 0.25, 0.55
"""Summaries may take a quarter of the budget, and of another half as much as what they cover is
worth."""
SAMPLE = 32
"""So many of the newest steps say how large the next ones will be."""
LEAST_LIMIT = 0.5
"""However large the next step may be, no compaction is due below this share of the budget."""
NEXT_STEP = 1.25
"""So many times the mean of the newest steps are kept free for the next one."""
REFOLD = 0.75
"""A fold leaves summaries this share of their room."""

PASTE = 500
"""Tokens of one user's message that are worth keeping whole."""
SAID, ANSWERED, WRITTEN = 1.0, 0.05, 0.45
"""How much of a message is worth keeping: of what a user said, of what tools answered, and of all
else."""


class Shares(msgspec.Struct, frozen=True):
    """A view's tokens and what they may become, in the reference encoding."""

    stays: int
    """What law 4 keeps."""
    settled: int
    """Summaries, and what lies uncovered between them."""
    raw: int
    """The newest history that no summary covers, without what law 4 keeps."""
    covered: int
    """What the summaries were made of."""
    settled_room: int
    """What summaries may take."""
    tail: int
    """The first of the newest steps that no compaction touches."""
    keep: int
    """How much of the newest history stays as it is."""
    worth: float
    """The share of its tokens that what is summarized next is worth."""

    @property
    def take(self) -> int:
        """How much of the newest history is summarized now."""
        return max(0, self.raw - self.keep)

    @property
    def density(self) -> float:
        """The share of its tokens that a summary may have."""
        return min(self.worth, self.settled_room / max(1, self.covered + self.take))


def used_of(view: View, available: int) -> int:
    """The view's tokens, messages over their cap counted as they are shown."""
    return view.view_tokens() - sum(bounds_of(view, cell(available)).saved.values())


def limit_of(view: View, available: int, options: DagOptions) -> int:
    """Above how many tokens a compaction is due: what the threshold says, or where the next step
    would not fit any more."""
    room = max(available - int(_growth(view) * NEXT_STEP), int(available * LEAST_LIMIT))
    return min(int(options.context_threshold * available), room)


def low_water(view: View, available: int, room: int, options: DagOptions) -> int:
    """How many tokens a compaction leaves, where summaries may take `room`: they stay as they are,
    and what is behind them is sent anew."""
    anew = 1 - room / max(1, available)
    bite = min(_growth(view) * BITE_STEPS, MOST_BITE * available) * anew
    return limit_of(view, available, options) - int(max(bite, LEAST_BITE * available))


def _growth(view: View) -> float:
    """The mean tokens of the newest steps."""
    first = max(view.tail_from(SAMPLE), view.base)
    steps = view.steps - first
    return (view.total - view.atom(first).start) / steps if steps else 0.0


def shares_of(view: View, goal: CompactionGoal, options: DagOptions) -> Shares:
    """How a view's tokens lie, and what a compaction makes of them."""
    stays = sum(view.atom(step).tokens for step in view.must_stay())
    rest = max(0, goal.available - stays)
    tail = _tail(view, int(rest * TAIL_SHARE), options)
    begin, kept = view.raw_from, set(view.must_stay())
    made = sum(summary.tokens for summary in view.summaries)
    gaps = sum(
        tokens - _within(view, kept, first, last)
        for first, last, tokens in view.uncovered()
        if last < begin
    )
    since = view.summaries[-1].span_end if view.summaries else 0
    raw = view.total - since - _within(view, kept, begin, view.steps - 1)
    tail_tokens = view.span(tail, view.steps - 1) - _within(view, kept, tail, view.steps - 1)
    worth = _worth(view, tail)
    room = min(
        settled_room(view, goal.available),
        int((LEAST_SETTLED + SETTLED_BY_WORTH * worth) * rest),
    )
    covered = sum(summary.covered_tokens for summary in view.summaries)
    shown = min(room, made + gaps + int(worth * max(0, raw - tail_tokens)))
    keep = tail_tokens
    if not goal.force:
        # What the harness measured beyond what is counted here stays, whatever is summarized.
        more = max(0, (goal.measured or 0) - used_of(view, goal.available))
        keep = max(keep, low_water(view, goal.available, room, options) - stays - shown - more)
    return Shares(stays, made + gaps, raw, covered, room, tail, keep, worth)


def _tail(view: View, room: int, options: DagOptions) -> int:
    """The first of the newest steps that no compaction touches: as many as the option says, where
    they take no more than their share; never less than the newest."""
    first = view.steps - 1
    oldest = max(view.tail_from(options.fresh_tail_turns), view.base, 0)
    while first > oldest and view.span(first - 1, view.steps - 1) <= room:
        first -= 1
    return max(first, 0)


def _within(view: View, steps: set[int], first: int, last: int) -> int:
    return sum(view.atom(step).tokens for step in steps if first <= step <= last)


def _worth(view: View, tail: int) -> float:
    """How much of what is summarized next is worth keeping, as a share of its tokens."""
    tokens = worth = 0.0
    for atom in _uncovered_atoms(view, tail):
        tokens += atom.tokens
        worth += sum(map(_worth_of, atom.entries))
    return min(1.0, worth / tokens) if tokens else WRITTEN


def _uncovered_atoms(view: View, tail: int) -> Iterator[Atom]:
    """The atoms in memory that a compaction may cover, in order."""
    stays = set(view.must_stay())
    for first, last, _ in view.uncovered():
        for step in range(first, min(last, tail - 1) + 1):
            if step not in stays and view.holds(step):
                yield view.atom(step)


def _worth_of(entry: Entry) -> float:
    if entry.traits.says:
        return SAID * min(entry.tokens, PASTE) + ANSWERED * max(0, entry.tokens - PASTE)
    return (ANSWERED if entry.traits.results else WRITTEN) * entry.tokens
