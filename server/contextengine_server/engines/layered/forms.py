"""Messages that are shown head and tail: those over the budget's cap, and long results of tools.
Both follow from the message and the budget's cell alone, so a form never comes and goes."""

from __future__ import annotations

from contextengine_server.context.budget import cell, cut_to
from contextengine_server.context.message import Slot
from contextengine_server.context.view import View

from ..bounds import Bounds, bounds_of

RESULT_TOKENS = 10_000
"""A result is cut to so many, as in PyClaw 0.3.0."""


def forms_of_view(view: View, budget: int) -> Bounds:
    """The forms of a view's messages at a budget."""
    return bounds_of(view, cell(budget), long_results(view))


def long_results(view: View) -> dict[int, dict[int, Slot]]:
    """The long results in memory, cut: by sequence, by step."""
    found: dict[int, dict[int, Slot]] = {}
    for step in view.large:
        atom = view.atom(step)
        answers = {e.sequence: len(e.traits.results) for e in atom.entries if e.traits.carries}
        for slot in atom.slots:
            if slot.tokens <= RESULT_TOKENS or slot.bounded is None:
                continue
            if slot.sequence not in answers:
                continue
            chars = len(slot.frame) * RESULT_TOKENS // slot.tokens
            if answers[slot.sequence] > 1:
                shown = slot.bounded(chars, each=True)
            else:
                shown, _ = cut_to(slot.bounded, chars, RESULT_TOKENS)
            if shown is not None and shown.tokens < slot.tokens:
                found.setdefault(step, {})[slot.sequence] = shown
    return found
