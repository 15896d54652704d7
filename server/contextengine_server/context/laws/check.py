"""Laws 1 to 8 over a plan, in order: the first that is broken is reported."""

from __future__ import annotations

from collections.abc import Callable

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


def violation(case: Case) -> Violation | None:
    """The lowest law that the plan breaks, or None."""
    for law in CHECKED:
        broken = law(case)
        if broken is not None:
            return broken
    return None
