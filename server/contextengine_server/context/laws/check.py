"""Laws 1 to 8 over a plan, in order: the first that is broken is reported."""

from __future__ import annotations

from collections.abc import Callable

from ..plan import Keep, Plan
from ..view import View
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


OF_ANY_LIST = (budget.check, scope.check)
"""Laws that a plan can break although it shows all of the view verbatim."""


def shows_all(plan: Plan, view: View) -> bool:
    """True where a plan is the whole view, verbatim, of a session that nothing is left out of. Such
    a plan keeps every law that asks whether something is there, in its place and as it was."""
    if len(plan.segments) != 1 or view.base:
        return False
    only = plan.segments[0]
    return isinstance(only, Keep) and only.first == 0 and only.last == len(view.atoms) - 1


def violation(case: Case) -> Violation | None:
    """The lowest law that the plan breaks, or None."""
    for law in OF_ANY_LIST if shows_all(case.plan, case.view) else CHECKED:
        broken = law(case)
        if broken is not None:
            return broken
    return None
