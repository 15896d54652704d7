"""What the layered engine shows: everything where it fits; else the oldest raw steps go first,
never the newest step. What its compactions leave stands where it was said: the summaries, and what
is kept between them."""

from __future__ import annotations

from collections.abc import Mapping

from contextengine_server.context.lawful import Fitting, fitting, plan_of
from contextengine_server.context.layout import reshaped
from contextengine_server.context.plan import Keep, Plan
from contextengine_server.context.view import View

from .forms import forms_of_view

TAIL_STEPS = 1
"""The newest step is as it is: the model has not answered its results yet."""


def plan(view: View, budget: int, reserved: int) -> Plan:
    """The plan for a budget of which `reserved` is not for items, in tokens of the reference
    encoding."""
    plain = view.atoms and not (view.large or view.summaries or view.evictions.front)
    if plain and view.total <= budget - reserved:
        return Plan((Keep(0, view.steps - 1),))
    bounds = forms_of_view(view, budget)
    shown = fitted(view, budget - reserved, bounds.saved)
    made = plan_of(view, shown.ranges, shown.summaries, rule=shown.rule, over=shown.over)
    segments = reshaped(made.segments, bounds.forms, bounds.reasons)
    return Plan(segments, made.cut, made.rule, bounds.name(view, made.cut), made.over)


def fitted(view: View, room: int, saved: Mapping[int, int]) -> Fitting:
    """What fits a room."""
    return fitting(view, room, TAIL_STEPS, saved, lambda _: saved)


def hidden_in(view: View, room: int, saved: Mapping[int, int]) -> tuple[set[int], bool]:
    """The steps in memory that are neither shown in a room nor summarized; and whether a summary is
    not shown either."""
    if view.view_tokens() - sum(saved.values()) <= room and not view.evictions.evicted(room):
        return set(), False
    shown = fitted(view, room, saved)
    there = {step for first, last in shown.ranges for step in range(first, last + 1)}
    there.update(view.must_stay())
    hidden = {
        step
        for first, last, _ in view.uncovered()
        for step in range(first, last + 1)
        if step not in there and view.holds(step)
    }
    return hidden, len(shown.summaries) < len(view.summaries)
