"""What `dag` shows: everything where it fits; else the oldest raw atoms go first, then the oldest
summaries, then the tail's old end."""

from __future__ import annotations

from collections.abc import Sequence

from contextengine_server.context.lawful import kept_before, plan_of, short_tail, steady_cut
from contextengine_server.context.layout import Range, everything, reshaped, uncovered
from contextengine_server.context.plan import Plan
from contextengine_server.context.view import Summary, View

from ..bounds import REASON, Bounds, bounds_of


def plan(view: View, cell: int, reserved: int, tail_steps: int) -> Plan:
    """The plan for a cell of the budget of which `reserved` is not for items, in tokens of the
    reference encoding."""
    room = cell - reserved
    bounds = bounds_of(view, cell)
    if not view.steps:
        return Plan((), over=room < 0)
    tail = max(view.tail_from(tail_steps), view.raw_from)
    reached = steady_cut(view, cell, room)
    if not reached:
        return Plan(reshaped(everything(view), bounds.forms, REASON), forms=bounds.name(view, 0))
    shown = uncovered(view, reached)
    if shown and shown[0][0] <= tail:
        rule = f"grid cut at step {shown[0][0]}"
        return _bounded(view, plan_of(view, shown, view.summaries, rule=rule), bounds)
    summaries = _that_fit(view, room, tail, bounds)
    if summaries is not None:
        ranges: list[Range] = [(tail, view.steps - 1)] if tail < view.steps else []
        return _bounded(view, plan_of(view, ranges, summaries, rule="law tail"), bounds)
    ranges, over = short_tail(view, room, tail, bounds.saved)
    return _bounded(view, plan_of(view, ranges, rule="law budget", over=over), bounds)


def _bounded(view: View, made: Plan, bounds: Bounds) -> Plan:
    """The plan with the messages over their cap head and tail."""
    segments = reshaped(made.segments, bounds.forms, REASON)
    return Plan(segments, made.cut, made.rule, bounds.name(view, made.cut), made.over)


def _that_fit(view: View, room: int, tail: int, bounds: Bounds) -> Sequence[Summary] | None:
    """The newest summaries that fit beside the whole tail; None where not even the tail fits."""
    if tail < view.base:
        return None  # the window holds more than a cell, and the tail is longer than the window
    left = room - kept_before(view, tail) - view.span(tail, view.steps - 1)
    left += bounds.from_step(tail)
    if left < 0:
        return None
    kept: list[Summary] = []
    for summary in reversed(view.summaries):
        left -= summary.tokens
        if left < 0:
            break
        kept.append(summary)
    return kept[::-1]
