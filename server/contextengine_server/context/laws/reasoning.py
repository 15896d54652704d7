"""Law 3, reasoning: signed or redacted reasoning is byte-identical or absent, never altered; absent
alone only where the provider accepts that, and never inside the open tool loop.

The open tool loop is everything behind the newest user message while calls are pending.
"""

from __future__ import annotations

from ..message import Form
from ..plan import Reshaped
from .case import Case, Violation

_WHOLE_OR_GONE = {Form.PLACEHOLDER, Form.NOTE}


def check(case: Case) -> Violation | None:
    """No other form touches sealed reasoning; a form that leaves it out is allowed by the provider
    and outside the loop."""
    for segment in case.plan.segments:
        if not isinstance(segment, Reshaped):
            continue
        for step in range(segment.first, segment.last + 1):
            atom = case.view.atom(step)
            for entry in atom.entries:
                slot = segment.slots.get(entry.sequence)
                if slot is None or not entry.traits.sealed or slot.form in _WHOLE_OR_GONE:
                    continue
                if slot.form != Form.WITHOUT_REASONING:
                    return Violation(
                        3,
                        "reasoning",
                        f"message {entry.sequence} has sealed reasoning in form {slot.form.name}",
                    )
                if not case.reasoning_may_go:
                    return Violation(
                        3,
                        "reasoning",
                        f"message {entry.sequence} would stand without its reasoning",
                    )
                if _in_open_loop(case, step):
                    return Violation(
                        3, "reasoning", f"message {entry.sequence} is inside the open tool loop"
                    )
    return None


def _in_open_loop(case: Case, step: int) -> bool:
    return case.view.atoms[-1].pending and step > case.view.user_step
