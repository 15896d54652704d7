"""Laws 1 to 8 over a plan, in order: the first that is broken is reported."""

from __future__ import annotations

from collections.abc import Callable

from ..plan import Keep
from . import budget, honesty, intent, pairs, pending, reasoning, scope, tail
from .case import Case, Violation

CHECKED: tuple[Callable[[Case], Violation | None], ...] = (
    pairs.check,
    pending.check,
    reasoning.check,
    intent.check,
    budget.check,
    tail.check,
    honesty.check,
    scope.check,
)


def lacks_nothing(case: Case) -> bool:
    """True where a plan is the whole view, verbatim, within the budget: all is there, in its place
    and as it was, so that there is no law that it can break."""
    segments, view = case.plan.segments, case.view
    if len(segments) != 1 or view.base or case.tokens > case.budget or not all(view.scope):
        return False
    only = segments[0]
    return isinstance(only, Keep) and only.first == 0 and only.last == len(view.atoms) - 1


def violation(case: Case) -> Violation | None:
    """The lowest law that the plan breaks, or None."""
    if lacks_nothing(case):
        return None
    for law in CHECKED:
        broken = law(case)
        if broken is not None:
            return broken
    return None
