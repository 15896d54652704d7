"""How a budget is shared: what summaries may take, how much raw history stays beside them, and how
large the next summary is.

All of it are shares of the budget and of the session, so that the room is used whatever their size.
A summary says as much of what it covers as is worth it: what people wrote nearly whole, of what
tools answered little. So a long talk is shown as large summaries and a short tail, and a session of
tool calls as small summaries and much of its newest history as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import msgspec

from contextengine_server.context.atom import Atom
from contextengine_server.context.budget import cell
from contextengine_server.context.lawful import SavedThen
from contextengine_server.context.message import Entry
from contextengine_server.context.settled import USER_SHARE, settled_room
from contextengine_server.context.view import View

from ..bounds import bounds_of, saved_after, with_masks
from ..contract import CompactionGoal
from ..masks import REASON as STALE
from ..masks import Masks, coming_masks, masks_of, saved_by
from .options import DagOptions

NEXT_STEP = 2.5
"""A compaction is due where so many times the mean of the newest steps have no room: one that does
not fit any more evicts, which begins the list anew, and the compaction does so once more."""
UNUSED = 0.088
"""The share of the budget that is unused on average, of which a compaction makes room: each one
makes the list begin anew, so less would be used by more of what is sent again."""
LEAST_STEPS, MOST_BITE = 3, 0.28
"""The room that a compaction makes holds so many mean steps at least, where these take no more than
this share of the budget: else each step would begin anew."""
TAIL_SHARE = 0.15
"""The newest steps that no compaction touches take no more than this share of the budget."""
LEAST_SETTLED, SETTLED_BY_WORTH = 0.25, 0.55
"""Summaries may take a quarter of the budget, and of another half as much as what they cover is
worth."""
MOST_TOLD = 0.7
"""They may take more where users' words have no room in that, up to this share: an answer can be
asked for again, what a user told stands nowhere else."""
SAMPLE = 32
"""So many of the newest steps say how large the next ones will be."""
ROUNDS = 8
"""More would not move it by a token in a hundred: a summary takes much less than its messages."""
LEAST_LIMIT = 0.8
"""However large the next step may be, no compaction is due below this share of the budget: more
kept free would be empty at most steps, and spared hardly a new beginning of the list."""
REFOLD = 0.75
"""A fold leaves summaries this share of their room."""

PASTE = 500
"""Tokens of one user's message that are worth keeping whole."""
SAID, ANSWERED, WRITTEN = 1.0, 0.05, 0.45
"""How much of a message is worth keeping: of what a user said, of what tools answered, and of all
else."""


class Shares(msgspec.Struct, frozen=True):
    """A view's tokens and what they may become, in the reference encoding."""

    settled: int
    """Summaries, and what lies uncovered between them."""
    covered: int
    """What the summaries were made of."""
    settled_room: int
    """What summaries may take."""
    tail: int
    """The first of the newest steps that no compaction touches."""
    take: int
    """How much raw history is summarized now."""
    worth: float
    """The share of its tokens that what is summarized next is worth."""
    over: int
    """How many tokens the compaction is to take off the list; 0: nobody says."""

    @property
    def density(self) -> float:
        """The share of its tokens that a summary may have."""
        return min(self.worth, self.settled_room / max(1, self.covered + self.take))


class Savings:
    """What other forms of messages save of a view at a budget, by step. Each is worked out once, by
    going through all of the view: so one of these serves all that is asked of the view at a
    time."""

    def __init__(self, view: View, available: int, options: DagOptions) -> None:
        self._view, self._tail = view, options.fresh_tail_turns
        self._cell = cell(available)

    @cached_property
    def now(self) -> dict[int, int]:
        """As it is shown."""
        bounds = bounds_of(self._view, self._cell)
        return with_masks(bounds, self._view, self._masks, STALE).saved

    @cached_property
    def coming(self) -> dict[int, int]:
        """What masks will save once a summary is committed."""
        return saved_by(self._view, self._coming)

    @cached_property
    def masked(self) -> int:
        """What masks save as it is shown, all steps together."""
        return sum(saved_by(self._view, self._masks).values())

    @cached_property
    def _coming(self) -> Masks:
        return coming_masks(self._view, self._tail)

    @cached_property
    def _masks(self) -> Masks:
        return masks_of(self._view, self._tail)

    @cached_property
    def used(self) -> int:
        """The view's tokens, messages in other forms counted as they are shown."""
        return self._view.view_tokens() - sum(self.now.values())

    @property
    def then(self) -> SavedThen:
        """The same as `now` after the commit of a revision."""
        return saved_after(self._view, self._cell, self._tail)


def saved_of(view: View, available: int, options: DagOptions) -> dict[int, int]:
    """What other forms of messages save at a budget, by step."""
    return Savings(view, available, options).now


def limit_of(view: View, available: int, options: DagOptions) -> int:
    """Above how many tokens a compaction is due: what the threshold says, or where the next steps
    would not fit any more."""
    next_steps = int(_growth(view, available) * NEXT_STEP)
    room = max(available - next_steps, int(available * LEAST_LIMIT))
    return min(int((options.context_threshold or 1.0) * available), room)


def low_water(view: View, available: int, options: DagOptions) -> int:
    """How many tokens a compaction leaves. The list grows from there to the limit and one step
    more, so what is unused on average is half of the way, and what is kept free but for a part of
    that step."""
    bite, least = _bites(view, available)
    return limit_of(view, available, options) - int(max(bite, least))


def few_steps(view: View, available: int) -> bool:
    """True where the steps are so large that the room which a compaction makes is counted in
    them."""
    bite, least = _bites(view, available)
    return bite < least


def _bites(view: View, available: int) -> tuple[float, float]:
    """The room that a compaction is to make, and the least of it."""
    growth = _growth(view, available)
    bite = 2 * (UNUSED * available - (NEXT_STEP - 0.5) * growth)
    return bite, min(LEAST_STEPS * growth, MOST_BITE * available)


def _growth(view: View, available: int) -> float:
    """The mean tokens of the newest steps, as they are shown."""
    first = max(view.tail_from(SAMPLE), view.base)
    steps = view.steps - first
    if not steps:
        return 0.0
    saved = bounds_of(view, cell(available)).saved
    less = sum(tokens for step, tokens in saved.items() if step >= first)
    return (view.total - view.atom(first).start - less) / steps


def shares_of(
    view: View, goal: CompactionGoal, options: DagOptions, savings: Savings | None = None
) -> Shares:
    """How a view's tokens lie, and what a compaction makes of them. `savings`: what is known of the
    view at the goal's budget."""
    savings = savings or Savings(view, goal.available, options)
    kept, available = set(view.must_stay()), goal.available
    rest = max(0, available - sum(view.atom(step).tokens for step in kept))
    tail = _tail(view, int(rest * TAIL_SHARE), options)
    begin = view.raw_from
    made = sum(summary.tokens for summary in view.summaries)
    gaps = sum(
        tokens - _within(view, kept, first, last)
        for first, last, tokens in view.uncovered()
        if last < begin
    )
    since = view.summaries[-1].span_end if view.summaries else 0
    tail_tokens = view.span(tail, view.steps - 1) - _within(view, kept, tail, view.steps - 1)
    masked = sum(savings.coming.values())
    most = view.total - since - _within(view, kept, begin, view.steps - 1) - masked - tail_tokens
    worth, told = _worth(view)
    covered = sum(summary.covered_tokens for summary in view.summaries)
    words = told * (covered + most)
    room = min(
        # A user's message twice as large as any must not leave summaries without their room.
        max(0, settled_room(view, available) - min(view.user_peak, _grows(view, rest))),
        int(max((LEAST_SETTLED + SETTLED_BY_WORTH * worth) * rest, min(words, MOST_TOLD * rest))),
    )
    take, over = max(0, most), 0
    if not goal.force:
        # What the harness measured beyond what is counted here stays, whatever is summarized.
        used = max(savings.used, goal.measured or 0)
        used -= masked - savings.masked
        over = used - low_water(view, available, options)
        take = min(take, _take(over, min(worth, _written(view)), room, covered))
    return Shares(made + gaps, covered, room, tail, take, worth, max(0, over))


def _grows(view: View, rest: int) -> int:
    """How much more than for the largest user message may once be kept free for one."""
    return max(0, rest // USER_SHARE - view.user_peak)


def _take(over: int, worth: float, room: int, covered: int) -> int:
    """How much history makes way for so many tokens, and for what its own summary takes: what it is
    worth, and no more than its part of the room of all summaries."""
    take = max(0.0, over)
    for _ in range(ROUNDS):
        take = max(0.0, over + min(worth, room / max(1, covered + take)) * take)
    return int(take)


def _written(view: View) -> float:
    """The share of its messages' tokens that the newest summary of messages took: a summarizer may
    write less than it may. 1: there is none."""
    leaves = [summary for summary in view.summaries if not summary.depth]
    return leaves[-1].tokens / max(1, leaves[-1].covered_tokens) if leaves else 1.0


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


def _worth(view: View) -> tuple[float, float]:
    """How much of the history that no summary covers is worth keeping, as a share of its tokens;
    and how much of it users told. The tail counts as well: a few messages say little of more."""
    tokens = worth = told = 0.0
    for atom in _uncovered_atoms(view):
        tokens += atom.tokens
        for entry in atom.entries:
            worth += _worth_of(entry)
            if entry.traits.says:
                told += min(entry.tokens, PASTE)
    return (min(1.0, worth / tokens), min(1.0, told / tokens)) if tokens else (WRITTEN, 0.0)


def _uncovered_atoms(view: View) -> Iterator[Atom]:
    """The atoms in memory that no summary covers, in order, but for what stays whatever comes."""
    stays = set(view.must_stay())
    for first, last, _ in view.uncovered():
        for step in range(first, last + 1):
            if step not in stays and view.holds(step):
                yield view.atom(step)


def _worth_of(entry: Entry) -> float:
    if entry.traits.says:
        return SAID * min(entry.tokens, PASTE) + ANSWERED * max(0, entry.tokens - PASTE)
    return (ANSWERED if entry.traits.results else WRITTEN) * entry.tokens
