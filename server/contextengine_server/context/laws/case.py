"""What a law is given, and what it answers."""

from __future__ import annotations

import msgspec

from ..plan import Declared, Keep, Plan, Reshaped, Summarized
from ..view import View


class Case(msgspec.Struct, frozen=True):
    """A plan over a view, under a budget, by an engine that declared what it does."""

    plan: Plan
    view: View
    budget: int
    """For items, in the reference encoding."""
    tokens: int
    """The plan's, in the reference encoding."""
    declared: Declared
    reasoning_may_go: bool = False
    """True where the target provider accepts an assistant message without the reasoning that it
    came with."""

    def shown(self) -> list[tuple[int, int]]:
        """The ranges of steps whose messages are shown, in the plan's order."""
        return [(s.first, s.last) for s in self.plan.segments if not isinstance(s, Summarized)]

    def shows(self, step: int) -> bool:
        """True where a step's messages are shown in some form."""
        # From the end, since it is the tail that is asked for: a long session may have hundreds of
        # summaries before it.
        for segment in reversed(self.plan.segments):
            if not isinstance(segment, Summarized) and segment.first <= step <= segment.last:
                return True
        return False

    def verbatim(self, step: int) -> bool:
        """True where a step is shown as it is."""
        for segment in self.plan.segments:
            if isinstance(segment, Keep) and segment.first <= step <= segment.last:
                return True
            if isinstance(segment, Reshaped) and segment.first <= step <= segment.last:
                return not any(
                    slot.sequence in segment.slots for slot in self.view.atom(step).slots
                )
        return False


class Violation(msgspec.Struct, frozen=True):
    """A law that a plan breaks, and how."""

    law: int
    name: str
    how: str

    def __str__(self) -> str:
        return f"law {self.law} ({self.name}): {self.how}"
