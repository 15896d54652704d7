"""Law 7, honesty: a summary says what it is, from the row and not from its text; a form says what
it left out.

How a summary is written is in `context.summary_text`; here: only live summaries of the view are
shown, each with what its row says, and no other form than the engine declared.
"""

from __future__ import annotations

from ..plan import Reshaped, Summarized
from .case import Case, Violation


def check(case: Case) -> Violation | None:
    """Summaries are the view's own, and forms are declared."""
    for segment in case.plan.segments:
        if isinstance(segment, Summarized) and segment.summary not in case.view.summaries:
            return Violation(
                7,
                "honesty",
                f"summary {segment.summary.id} is not a live top-level summary of the view",
            )
        if isinstance(segment, Reshaped):
            for slot in segment.slots.values():
                if slot.form not in case.declared.forms:
                    return Violation(7, "honesty", f"form {slot.form.name} was not declared")
    return None
