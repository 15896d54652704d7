"""What `dag` shows: everything where it fits; else the oldest raw steps go first, then the oldest
summaries, never the newest step."""

from __future__ import annotations

from contextengine_server.context.budget import cell
from contextengine_server.context.lawful import fitting, plan_of
from contextengine_server.context.layout import reshaped
from contextengine_server.context.plan import Plan
from contextengine_server.context.view import View

from ..bounds import saved_after, short_forms


def plan(view: View, budget: int, reserved: int, tail_steps: int) -> Plan:
    """The plan for a budget of which `reserved` is not for items, in tokens of the reference
    encoding."""
    bounds = short_forms(view, cell(budget), tail_steps)

    then = saved_after(view, cell(budget), tail_steps)
    shown = fitting(view, budget - reserved, tail_steps, bounds.saved, then)
    made = plan_of(view, shown.ranges, shown.summaries, rule=shown.rule, over=shown.over)
    segments = reshaped(made.segments, bounds.forms, bounds.reasons)
    return Plan(segments, made.cut, made.rule, bounds.name(view, made.cut), made.over)
