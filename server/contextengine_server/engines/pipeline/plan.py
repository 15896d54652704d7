"""What the pipeline shows: the newest turns behind the summary, dead and old results in short; of
that what fits."""

from __future__ import annotations

from collections.abc import Mapping

from contextengine_server.context.lawful import Fitting, fitting, plan_of
from contextengine_server.context.layout import reshaped
from contextengine_server.context.plan import Keep, Plan
from contextengine_server.context.view import View

from ..bounds import Bounds
from . import window
from .forms import Shaping
from .options import PipelineOptions
from .reasoning import unreasoned

TAIL_STEPS = 1
"""The newest step is as it is: the model has not answered its results yet."""


def plan(view: View, budget: int, reserved: int, options: PipelineOptions) -> Plan:
    """The plan for a budget of which `reserved` is not for items, in tokens of the reference
    encoding."""
    gone = window.hidden(view, budget, options)
    shaping = Shaping(view, budget, options)
    bounds = shaping.now()
    if not (gone or bounds.forms or view.summaries) and view.total <= budget - reserved:
        whole = Plan((Keep(0, view.steps - 1),) if view.steps else ())
        return in_forms(view, whole, bounds, options) if view.replies.thoughts else whole
    shown = fitted(view, budget - reserved, bounds.saved, shaping)
    rule, ranges = shown.rule, [*shown.ranges]
    if gone and not shown.over:
        kept = window.within(ranges, gone)
        rule, ranges = (rule or window.RULE if kept != ranges else rule), kept
    made = plan_of(view, ranges, shown.summaries, rule=rule, over=shown.over)
    return in_forms(view, made, bounds, options)


def in_forms(view: View, made: Plan, bounds: Bounds, options: PipelineOptions) -> Plan:
    """The plan with messages in their forms: those over their cap or masked, and those that lose
    some of their reasoning."""
    bare = unreasoned(view, made.segments, bounds.forms, options)
    forms, reasons = bounds.forms, bounds.reasons
    if bare.forms:
        forms = {**forms, **{at: {**forms.get(at, {}), **new} for at, new in bare.forms.items()}}
        reasons = {**bare.reasons, **reasons}
    name = bounds.name(view, made.cut) + bare.name
    segments = reshaped(made.segments, forms, reasons)
    return Plan(segments, made.cut, made.rule, name, made.over)


def fitted(view: View, room: int, saved: Mapping[int, int], shaping: Shaping) -> Fitting:
    """What fits a room, whatever the window: what a mask gave room for is not filled with what had
    gone before it."""

    def then(revision: int) -> Mapping[int, int]:
        return shaping.before(revision).saved

    return fitting(view, room, TAIL_STEPS, saved, then, shaping.moments)
