"""Law 5, budget: the tokens sent are within the budget, or the outcome says OVER_BUDGET with the
smallest lawful list.

Never silently more. An engine that never evicts answers its whole view as the smallest list.
"""

from __future__ import annotations

from .case import Case, Violation


def check(case: Case) -> Violation | None:
    """Within the budget; or declared over, and nothing is shown that a law would let go."""
    if case.tokens <= case.budget:
        return None
    if not case.plan.over:
        return Violation(
            5, "budget", f"{case.tokens} tokens exceed {case.budget} and the plan does not say so"
        )
    if not case.declared.evicts:
        return None
    needed = set(case.view.must_stay())
    if case.view.steps:
        needed.add(case.view.steps - 1)
    extra = [
        step
        for first, last in case.shown()
        for step in range(first, last + 1)
        if step not in needed
    ]
    if extra or len(case.shown()) != len(case.plan.segments):
        return Violation(
            5, "budget", "the list exceeds the budget and is not the smallest lawful one"
        )
    return None
