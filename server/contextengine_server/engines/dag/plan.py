"""What `dag` shows: everything where it fits; else the oldest raw atoms go first, then the oldest
summaries, then the tail's old end.

The cut through the raw history moves in blocks: it is the first safe cut point whose running token
sum reaches the next edge of a grid a quarter of the cell wide. So it stays put for many turns, and
is found by one look-up. It only moves on: the running sum counts what is covered too, and where it
stood when a summary was committed is worked out again from what the summary's row knows of that
moment. So no compaction brings back what was evicted, scraps between two summaries included.
"""

from __future__ import annotations

from collections.abc import Sequence

from contextengine_server.context.budget import grid, next_block
from contextengine_server.context.eviction import CommitSnapshot
from contextengine_server.context.plan import Plan
from contextengine_server.context.view import Summary, View

from ..bounding import REASON, Bounds, bounds_of
from ..layout import Range, everything, lay_out, reshaped, uncovered

USER_SHARE = 8
"""At most this part of the cell is kept free for a user message that lies before the cut."""


def plan(view: View, cell: int, reserved: int, tail_steps: int) -> Plan:
    """The plan for a cell of the budget of which `reserved` is not for items, in tokens of the
    reference encoding."""
    room, bounds = cell - reserved, bounds_of(view, cell)
    if not view.steps:
        return Plan((), forms=bounds.name(view, 0))
    tail = max(view.tail_from(tail_steps), view.raw_from)
    reached = _held(view, cell, room)
    if not _fits(view, cell, room, reached):
        reached = _grid(view, cell, room, _now(view), reached)
    if not reached:
        return Plan(reshaped(everything(view), bounds.forms, REASON), forms=bounds.name(view, 0))
    shown = uncovered(view, reached)
    if shown and shown[0][0] <= tail:
        return _from(view, shown, view.summaries, f"grid cut at step {shown[0][0]}", bounds)
    summaries = _that_fit(view, room, tail, bounds)
    if summaries is not None:
        return _from(view, _onward(view, tail), summaries, "law tail", bounds)
    return _short_tail(view, room, tail, bounds)


def _from(
    view: View,
    ranges: list[Range],
    summaries: Sequence[Summary],
    rule: str,
    bounds: Bounds,
    *,
    over: bool = False,
) -> Plan:
    cut = ranges[0][0] if ranges else view.steps
    segments = reshaped(lay_out(view, ranges, summaries), bounds.forms, REASON)
    return Plan(segments, cut=cut, rule=rule, forms=bounds.name(view, cut), over=over)


def _onward(view: View, first: int) -> list[Range]:
    return [(first, view.steps - 1)] if first < view.steps else []


def _kept_before(view: View, cut: int) -> int:
    """The tokens of what law 4 keeps although it lies before the cut."""
    return sum(view.atom(step).tokens for step in view.must_stay() if step < cut)


def _reserve(peak: int, cell: int) -> int:
    """The room for the newest user message where it is not among what is shown anyway: the largest
    one's, up to an eighth of the cell, wherever the newest one stands. So the room only shrinks as
    the session goes on, and no eviction lifts."""
    return min(peak, cell // USER_SHARE)


def _now(view: View) -> CommitSnapshot:
    return CommitSnapshot(0, view.total, view.fixed_tokens(), view.user_peak)


def _held(view: View, cell: int, room: int) -> int:
    """Which running sum the cut had reached when summaries were committed, those that are folded by
    now included: what was evicted by then and is not covered by now stays evicted, although the
    summaries have made room."""
    before = view.evictions.at(room, cell // USER_SHARE)
    return 0 if before is None else _grid(view, cell, room, before)


def _fits(view: View, cell: int, room: int, reached: int) -> bool:
    """True where nothing need be evicted but what was by then."""
    tokens = view.view_tokens(reached)
    if view.summaries:
        user = view.user_step
        aside = view.atom(user).tokens if user >= 0 and view.aside(user, reached) else 0
        tokens += max(0, _reserve(view.user_peak, cell) - aside)
    return tokens <= room


def _grid(view: View, cell: int, room: int, then: CommitSnapshot, reached: int = 0) -> int:
    """The running sum from which on raw history is shown with every summary, in the view as it was
    then; at least `reached`."""
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


def _that_fit(view: View, room: int, tail: int, bounds: Bounds) -> list[Summary] | None:
    """The newest summaries that fit beside the whole tail; None where not even the tail fits."""
    if tail < view.base:
        return None  # the window holds more than a cell, and the tail is longer than the window
    left = (
        room - _kept_before(view, tail) - view.span(tail, view.steps - 1) + bounds.from_step(tail)
    )
    if left < 0:
        return None
    kept: list[Summary] = []
    for summary in reversed(view.summaries):
        left -= summary.tokens
        if left < 0:
            break
        kept.append(summary)
    return kept[::-1]


def _short_tail(view: View, room: int, tail: int, bounds: Bounds) -> Plan:
    """Whole steps of the tail go from its old end, never the last."""
    newest = view.steps - 1
    cut = newest
    tokens = (
        _kept_before(view, newest) + view.atom(newest).tokens - bounds.from_step(newest)
        if newest >= view.raw_from
        else _kept_before(view, view.steps)
    )
    if newest < view.raw_from:
        return _from(view, [], (), "law budget", bounds, over=tokens > room)
    kept = set(view.must_stay())
    while cut > max(tail, view.base):
        cost = 0 if cut - 1 in kept else view.atom(cut - 1).tokens - bounds.saved.get(cut - 1, 0)
        if tokens + cost > room:
            break
        tokens += cost
        cut -= 1
    return _from(view, _onward(view, cut), (), "law budget", bounds, over=tokens > room)
