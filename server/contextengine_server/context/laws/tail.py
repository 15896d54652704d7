"""Law 6, tail: the newest steps, as many as the engine declares, are verbatim but for forms and
what laws 1 to 5 demand.

A tail that cannot fit gives up whole steps from its old end, never the last. What the next reply
answers is part of it. What a summary covers no longer is (a host's own compaction may reach into
it). The one form in the tail is head and tail, for a message over its cap.
"""

from __future__ import annotations

from ..message import Form
from ..plan import Keep, Reshaped
from .case import Case, Violation


def check(case: Case) -> Violation | None:
    """The tail is whole; or the budget demands what is missing: the newest step given up would not
    fit."""
    view = case.view
    if not view.steps:
        return None
    newest = view.steps - 1
    if not case.shows(newest) and view.covering(newest) is None:
        return Violation(6, "tail", "the newest step is not shown")
    declared = max(view.tail_from(max(case.declared.tail_steps, 1)), view.raw_from)
    oldest = max(min(declared, view.unanswered), view.raw_from)
    last = case.plan.segments[-1] if case.plan.segments else None
    if isinstance(last, Keep) and last.first <= oldest and last.last == newest:
        return None  # as nearly always; one range holds it all
    masked = _masked(case, declared)
    if masked is not None:
        return Violation(
            6, "tail", f"step {masked} of the tail is shown in a form for older messages"
        )
    given_up = next((step for step in range(newest, oldest - 1, -1) if not case.shows(step)), None)
    if given_up is None:
        return None
    kept = set(view.must_stay())
    if any(case.shows(step) for step in range(oldest, given_up) if step not in kept):
        return Violation(
            6, "tail", f"step {given_up} is missing although an older step of the tail is shown"
        )
    if view.holds(given_up) and case.tokens + view.atom(given_up).tokens <= case.budget:
        return Violation(6, "tail", f"step {given_up} is missing although it would fit")
    return None


def _masked(case: Case, oldest: int) -> int | None:
    """A step of the tail with a message in another form than head and tail."""
    for segment in case.plan.segments:
        if isinstance(segment, Reshaped):
            for step in range(max(segment.first, oldest), segment.last + 1):
                forms = {
                    segment.slots[s.sequence].form
                    for s in case.view.atom(step).slots
                    if s.sequence in segment.slots
                }
                if forms - {Form.HEAD_TAIL}:
                    return step
    return None
