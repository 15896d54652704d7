"""What `dag` shows: everything where it fits; else the oldest raw steps go first, then the oldest
summaries, never the newest step."""

from __future__ import annotations

from contextengine_server.context.budget import cell
from contextengine_server.context.lawful import fitting, plan_of
from contextengine_server.context.layout import reshaped
from contextengine_server.context.plan import Plan
from contextengine_server.context.view import View

from ..bounds import REASON, bounds_of


def plan(view: View, budget: int, reserved: int, tail_steps: int) -> Plan:
    """The plan for a budget of which `reserved` is not for items, in tokens of the reference
    encoding."""
    bounds = bounds_of(view, cell(budget))
    shown = fitting(view, budget - reserved, tail_steps, bounds.saved)
    made = plan_of(view, shown.ranges, shown.summaries, rule=shown.rule, over=shown.over)
    segments = reshaped(made.segments, bounds.forms, REASON)
    return Plan(segments, made.cut, made.rule, bounds.name(view, made.cut), made.over)
