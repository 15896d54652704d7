"""Messages over a cap, which are shown head and tail wherever they are shown (law 6); so are the
large messages of a step that is over a cap as a whole.

Whether a message is over its cap follows from its step and the budget's cell alone, so the form
never comes and goes. The one exception is the newest step while calls of it stand open: it is
verbatim until they are answered (law 2).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from contextengine_server.context.atom import Atom
from contextengine_server.context.budget import cell as on_grid
from contextengine_server.context.epoch import digest
from contextengine_server.context.message import MIN_CAP_CHARS, Slot
from contextengine_server.context.shares import cut_to, level
from contextengine_server.context.view import View

MAX_CAP_CHARS = 100_000
SHARE = 0.8
CHARS_PER_TOKEN = 3.5
STEP_SHARE = 2
"""The messages of a step take no more than this part (a half) of the cell together, or than one may
take alone where that is more: the next step is to have room beside it."""
LEAST_SHARE = 500
"""No message is cut to fewer tokens than this for the sake of its neighbours."""
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
        while they were the newest, and what was there while calls of its step stood open. All else
        was over the cap from its first assembly on."""
        changed: list[int] = []
        for step, slots in sorted(self.forms.items()):
            atom = view.atom(step)
            if step >= first and atom.user:
                changed += slots
            elif step >= first and atom.calls:
                # Nothing stood open any more when the last message came; or something does yet.
                last = 0 if atom.open else atom.entries[-1].sequence
                changed += [sequence for sequence in slots if sequence != last]
        return digest(changed).hex() if changed else ""


def bounds_of(view: View, cell: int) -> Bounds:
    """The messages over the cap of a cell, as far back as the window holds."""
    bounds = Bounds()
    if not view.large:
        return bounds
    stays = set(view.must_stay())
    for step in view.large:
        atom = view.atom(step)
        if step in stays or atom.pending or view.covering(step) is not None:
            continue
        forms = forms_of(atom, cell)
        if forms:
            bounds.forms[step] = forms
            bounds.saved[step] = sum(
                slot.tokens - forms[slot.sequence].tokens
                for slot in atom.slots
                if slot.sequence in forms
            )
    return bounds


def forms_of(atom: Atom, cell: int) -> dict[int, Slot]:
    """What to show of a step instead of messages over the cap of a cell, its own or the step's: by
    sequence."""
    cap = cap_chars(cell)
    forms = {
        slot.sequence: shown
        for slot in atom.slots
        if slot.bounded is not None and (shown := slot.bounded(cap)) is not None
    }
    return forms | _shared(atom, forms, max(cell // STEP_SHARE, int(cap / CHARS_PER_TOKEN)))


def _shared(atom: Atom, forms: dict[int, Slot], room: int) -> dict[int, Slot]:
    """Shorter forms of the step's large messages where it exceeds the room with the forms that it
    has."""
    large = [slot for slot in atom.slots if slot.bounded is not None]
    sizes = [forms.get(slot.sequence, slot).tokens for slot in large]
    whole = sum(forms.get(slot.sequence, slot).tokens for slot in atom.slots)
    if len(large) < 2 or whole <= room:
        return {}
    # On the grid, so that a small result that comes late for its call changes nothing.
    share = max(LEAST_SHARE, on_grid(level(sizes, room - whole + sum(sizes))))
    shared: dict[int, Slot] = {}
    for slot, size in zip(large, sizes, strict=True):
        if size > share and slot.bounded is not None:
            shown, _ = cut_to(slot.bounded, len(slot.frame) * share // slot.tokens, share)
            if shown is not None:
                shared[slot.sequence] = shown
    return shared
