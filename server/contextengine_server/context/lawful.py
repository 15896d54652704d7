"""What every engine needs to be lawful: the smallest list that no law lets go of, the newest steps
that fit, and a cut through the history that stays put.

An engine is free in what it shows, and the laws only say no. These functions say what is always
right: an engine that shows `everything` of a view where it fits, else what `steady_cut` leaves,
else `short_tail`, breaks no law. Tokens are in the reference encoding. `saved` is what other forms
of messages save, by step: a message over its cap is shown head and tail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .budget import grid, next_block
from .eviction import CommitSnapshot
from .layout import Range, lay_out
from .plan import Plan
from .view import Summary, View

USER_SHARE = 8
"""At most this part of the cell is kept free for a user message that lies before the cut."""

NOTHING: Mapping[int, int] = {}


def plan_of(
    view: View,
    ranges: Sequence[Range],
    summaries: Sequence[Summary] = (),
    *,
    rule: str = "",
    over: bool = False,
) -> Plan:
    """The plan that shows these ranges of steps and summaries, and what law 4 keeps besides, each
    at its own place."""
    cut = ranges[0][0] if ranges else view.steps
    return Plan(lay_out(view, ranges, summaries), cut=cut, rule=rule, over=over)


def kept_before(view: View, cut: int) -> int:
    """The tokens of what law 4 keeps although it lies before the cut."""
    return sum(view.atom(step).tokens for step in view.must_stay() if step < cut)


def least(view: View, saved: Mapping[int, int] = NOTHING) -> int:
    """The tokens of what no law lets go: what law 4 keeps, and the newest step, which law 6 keeps
    unless a summary covers it."""
    stays, newest = view.must_stay(), view.steps - 1
    tokens = sum(view.atom(step).tokens for step in stays)
    if view.steps and newest >= view.raw_from and newest not in stays:
        tokens += view.atom(newest).tokens - saved.get(newest, 0)
    return tokens


def newest_within(
    view: View, room: int, oldest: int = 0, saved: Mapping[int, int] = NOTHING
) -> int:
    """The first of the newest steps that take no more than this room together, no step before
    `oldest` and never less than the newest. What law 4 keeps is shown anyway and takes none of
    it."""
    stays = set(view.must_stay())

    def cost(step: int) -> int:
        return 0 if step in stays else view.atom(step).tokens - saved.get(step, 0)

    first = view.steps - 1
    left = room - cost(first)
    while first > max(oldest, view.base) and (left := left - cost(first - 1)) >= 0:
        first -= 1
    return first


def short_tail(
    view: View, room: int, tail: int, saved: Mapping[int, int] = NOTHING
) -> tuple[list[Range], bool]:
    """What is shown where not even the tail fits: whole steps go from its old end, never the last
    (law 6). `tail` is its first step. With the ranges, whether they exceed the room: then they are
    the smallest lawful list (law 5), and no summary may stand beside them."""
    needed = least(view, saved)
    if view.steps - 1 < view.raw_from:
        return [], needed > room
    kept = sum(view.atom(step).tokens for step in view.must_stay())
    first = newest_within(view, room - kept, tail, saved)
    return [(first, view.steps - 1)], needed > room


def steady_cut(view: View, cell: int, room: int) -> int:
    """The running token sum from which on raw history is shown beside all summaries; 0: all of it.
    `room` is what the cell leaves for items.

    It moves in blocks of a quarter of the cell, so it stays put for many turns, and only on: the
    sum counts what is covered too, and where it stood when a summary was committed is worked out
    again from what the summary's row knows of that moment. So no compaction brings back what was
    evicted.
    """
    reached = _reached_before(view, cell, room)
    if not _fits(view, cell, room, reached):
        now = CommitSnapshot(0, view.total, view.fixed_tokens(), view.user_peak)
        reached = _next_edge(view, cell, room, now, reached)
    return reached


def _reserve(peak: int, cell: int) -> int:
    """The room for the newest user message where it is not among what is shown anyway: the largest
    one's, up to an eighth of the cell, wherever the newest one stands. So the room only shrinks as
    the session goes on, and no eviction lifts."""
    return min(peak, cell // USER_SHARE)


def _reached_before(view: View, cell: int, room: int) -> int:
    """Where the cut stood when summaries were committed, those that are folded by now included:
    what was evicted by then and is not covered by now stays evicted, although the summaries have
    made room."""
    before = view.evictions.at(room, cell // USER_SHARE)
    return 0 if before is None else _next_edge(view, cell, room, before)


def _fits(view: View, cell: int, room: int, reached: int) -> bool:
    """True where nothing need be evicted but what was by then."""
    tokens = view.view_tokens(reached)
    if view.summaries:
        user = view.user_step
        aside = view.atom(user).tokens if user >= 0 and view.aside(user, reached) else 0
        tokens += max(0, _reserve(view.user_peak, cell) - aside)
    return tokens <= room


def _next_edge(view: View, cell: int, room: int, then: CommitSnapshot, reached: int = 0) -> int:
    """The edge of the grid at which the cut stands in the view as it was then; at least
    `reached`."""
    stays, known = {*view.pinned, view.user_step} - {-1, *range(view.leading)}, -1
    # What law 4 keeps before the cut takes room, which may move the cut on: a few rounds settle it,
    # since it only rises.
    while reached != known:
        known = reached
        before = {step: view.atom(step).tokens for step in stays if view.atom(step).start < reached}
        kept = sum(before.values())
        pinned = sum(before[step] for step in view.pinned if step in before)
        free = room - then.fixed - max(pinned + _reserve(then.peak, cell), kept)
        reached = max(reached, next_block(then.total - free, grid(cell)))
    return reached
