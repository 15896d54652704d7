"""Law 4, intent: the newest user message is there, verbatim, and so are the leading system and
developer messages and whatever is labelled `pinned`."""

from __future__ import annotations

from .case import Case, Violation


def check(case: Case) -> Violation | None:
    """Every step that must stay is shown verbatim."""
    for step in case.view.intent():
        if not case.verbatim(step):
            return Violation(4, "intent", f"step {step} must be verbatim: {_why(case, step)}")
    return None


def _why(case: Case, step: int) -> str:
    if step < case.view.leading:
        return "it leads the session"
    return "it holds the newest user message" if step == case.view.user_step else "it is pinned"
