"""What `dag` shows: everything where it fits; else the oldest raw atoms go first, then the oldest summaries, then the tail's old end.

The cut through the raw history moves in blocks: it is the first safe cut point whose running token sum reaches the next edge of a
grid a quarter of the cell wide. So it stays put for many turns, and is found by one look-up. It only moves on: the running
sum counts what is covered too, so that a compaction never brings back what was evicted.
"""

from __future__ import annotations

from collections.abc import Sequence

from contextengine_server.context.budget import grid, next_block
from contextengine_server.context.plan import Plan
from contextengine_server.context.view import Summary, View

from ..bounding import REASON, Bounds, bounds_of
from ..layout import Range, everything, lay_out, reshaped

USER_SHARE = 8
"""At most this part of the cell is kept free for a user message that lies before the cut."""


def plan(view: View, cell: int, reserved: int, tail_steps: int) -> Plan:
    """The plan for a cell of the budget of which `reserved` is not for items, in tokens of the reference encoding."""
    room, bounds = cell - reserved, bounds_of(view, cell)
    held = _held_cut(view, cell, room)
    if not view.steps or (held == view.raw_from and view.view_tokens() <= room):
        return Plan(reshaped(everything(view), bounds.forms, REASON), forms=bounds.name(view, 0))
    tail = max(view.tail_from(tail_steps), view.raw_from)
    cut = _grid_cut(view, cell, room, held)
    if cut < view.steps and cut <= tail:
        return _from(view, cut, view.summaries, f"grid cut at step {cut}", bounds)
    summaries = _that_fit(view, room, tail, bounds)
    if summaries is not None:
        return _from(view, tail, summaries, "law tail", bounds)
    return _short_tail(view, room, tail, bounds)


def _from(
    view: View, cut: int, summaries: Sequence[Summary], rule: str, bounds: Bounds, *, over: bool = False
) -> Plan:
    ranges: list[Range] = [(cut, view.steps - 1)] if cut < view.steps else []
    segments = reshaped(lay_out(view, ranges, summaries), bounds.forms, REASON)
    return Plan(segments, cut=cut, rule=rule, forms=bounds.name(view, cut), over=over)


def _kept_before(view: View, cut: int) -> int:
    """The tokens of what law 4 keeps although it lies before the cut."""
    return sum(view.atom(step).tokens for step in view.must_stay() if step < cut)


def _kept_free(view: View, cut: int, cell: int) -> int:
    """Room for what law 4 keeps before the cut. For the newest user message it is the largest one's, up to an eighth of the
    cell, wherever the newest one stands: so the room only shrinks as the session goes on, and no eviction lifts."""
    pinned = sum(view.atom(step).tokens for step in {*range(view.leading), *view.pinned} if step < cut)
    reserved = min(view.user_peak, cell // USER_SHARE)
    return max(pinned + reserved, _kept_before(view, cut))


def _held_cut(view: View, cell: int, room: int) -> int:
    """Where the cut stood when summaries were committed, those that are folded by now included: what was evicted by then and is
    not covered by now stays evicted, although the summaries have made room."""
    before = view.held.at(room)
    if before is None:
        return view.raw_from
    free = room - before.fixed - min(before.peak, cell // USER_SHARE)
    return view.cut_from(next_block(before.total - free, grid(cell)), view.raw_from)


def _grid_cut(view: View, cell: int, room: int, held: int) -> int:
    """The first step of the raw history that is shown, with every summary shown."""
    block = grid(cell)
    summaries = sum(summary.tokens for summary in view.summaries)
    cut, known = held, -1
    # What law 4 keeps before the cut takes room, which may move the cut on: a few rounds settle it, since it only rises.
    while cut != known and cut < view.steps:
        known = cut
        free = room - summaries - _kept_free(view, cut, cell)
        cut = view.cut_from(next_block(view.total - free, block), cut)
    return cut


def _that_fit(view: View, room: int, tail: int, bounds: Bounds) -> list[Summary] | None:
    """The newest summaries that fit beside the whole tail; None where not even the tail fits."""
    if tail < view.base:
        return None  # the window holds more than a cell, and the tail is longer than the window
    left = room - _kept_before(view, tail) - view.span(tail, view.steps - 1) + bounds.from_step(tail)
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
        return _from(view, view.steps, (), "law budget", bounds, over=tokens > room)
    kept = set(view.must_stay())
    while cut > max(tail, view.base):
        cost = 0 if cut - 1 in kept else view.atom(cut - 1).tokens - bounds.saved.get(cut - 1, 0)
        if tokens + cost > room:
            break
        tokens += cost
        cut -= 1
    return _from(view, cut, (), "law budget", bounds, over=tokens > room)
