"""Messages over a cap, which are shown head and tail wherever they are shown (law 6).

Whether a message is over its cap follows from the message and the budget's cell alone, so the form
never comes and goes. The one exception is the newest step while calls of it stand open: it is
verbatim until they are answered (law 2).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from contextengine_server.context.epoch import digest
from contextengine_server.context.message import MIN_CAP_CHARS, Slot
from contextengine_server.context.view import View

MAX_CAP_CHARS = 100_000
SHARE = 0.8
CHARS_PER_TOKEN = 3.5
REASON = "over its cap: head and tail"


def cap_chars(cell: int) -> int:
    """The characters of one message that are shown at most: 0.8 of the budget at 3.5 characters a
    token, 12,000 to 100,000, as in Comis
    (packages/agent/src/context-engine/lcd-fresh-tail-bound.ts)."""
    return max(MIN_CAP_CHARS, min(MAX_CAP_CHARS, int(cell * SHARE * CHARS_PER_TOKEN)))


@dataclass(slots=True)
class Bounds:
    """The messages of a view that are over the cap."""

    forms: dict[int, dict[int, Slot]] = field(default_factory=dict)
    """What to show instead: slots by sequence, by step."""
    saved: dict[int, int] = field(default_factory=dict)
    """The tokens that this saves, by step."""

    def from_step(self, first: int) -> int:
        """The tokens saved from a step on."""
        return sum(tokens for step, tokens in self.saved.items() if step >= first)

    def name(self, view: View, first: int) -> str:
        """Names, for the epoch, what of it may have been shown verbatim before: user messages,
        while they were the newest, and results that arrived while other calls of their step stood
        open. All else was over the cap from its first assembly on."""
        changed: list[int] = []
        for step, slots in sorted(self.forms.items()):
            atom = view.atom(step)
            last = atom.entries[-1].sequence
            if step >= first and atom.user:
                changed += slots
            elif step >= first and len(atom.calls) > 1:
                changed += [sequence for sequence in slots if sequence != last]
        return digest(changed).hex() if changed else ""


def bounds_of(view: View, cell: int) -> Bounds:
    """The messages over the cap of a cell, as far back as the window holds."""
    bounds = Bounds()
    if not view.large:
        return bounds
    cap, stays = cap_chars(cell), set(view.must_stay())
    for step in view.large:
        atom = view.atom(step)
        if step in stays or atom.pending:
            continue
        forms = {}
        for slot in atom.slots:
            if slot.bounded is not None and (shown := slot.bounded(cap)) is not None:
                forms[slot.sequence] = shown
                bounds.saved[step] = bounds.saved.get(step, 0) + slot.tokens - shown.tokens
        if forms:
            bounds.forms[step] = forms
    return bounds
