"""What the compressor shows: everything where it fits; else the oldest raw steps go first, never
the newest step, and the summary that covers the rest stands longest."""

from __future__ import annotations

from collections.abc import Mapping

from contextengine_server.context.lawful import Fitting, fitting, plan_of
from contextengine_server.context.layout import reshaped
from contextengine_server.context.plan import Keep, Plan
from contextengine_server.context.view import View

from .forms import TAIL_STEPS, forms_at, forms_now, moments
from .options import CompressorOptions


def plan(view: View, budget: int, reserved: int, options: CompressorOptions) -> Plan:
    """The plan for a budget of which `reserved` is not for items, in tokens of the reference
    encoding."""
    plain = view.atoms and not (view.large or view.summaries or view.evictions.front)
    plain = plain and not options.proactive_prune_tokens
    if plain and view.total <= budget - reserved:
        return Plan((Keep(0, view.steps - 1),))
    bounds = forms_now(view, budget, options)
    shown = fitted(view, budget, budget - reserved, bounds.saved, options)
    made = plan_of(view, shown.ranges, shown.summaries, rule=shown.rule, over=shown.over)
    segments = reshaped(made.segments, bounds.forms, bounds.reasons)
    return Plan(segments, made.cut, made.rule, bounds.name(view, made.cut), made.over)


def fitted(
    view: View, budget: int, room: int, saved: Mapping[int, int], options: CompressorOptions
) -> Fitting:
    """What fits a room of a budget."""

    def then(revision: int) -> Mapping[int, int]:
        return forms_at(view, budget, revision, options).saved

    return fitting(view, room, TAIL_STEPS, saved, then, lambda: moments(view, budget, options))
