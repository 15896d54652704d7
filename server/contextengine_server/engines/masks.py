"""Results that later ones stand for: a marker is shown in place of them (a form of the message).

A mask moves with compactions and with nothing else: what was stale when a summary was committed,
outside the tail of that moment, is masked from then on. A summary begins the list anew anyway, so
masks cost no beginning of their own; and since they follow from the commit's revision and the
messages alone, a restart changes nothing, and none is lifted but by undoing.

Only history behind the summaries is masked: there a result and what stands for it are both at hand.
"""

from __future__ import annotations

from bisect import bisect_left
from sys import maxsize

from contextengine_server.context.atom import Atom
from contextengine_server.context.message import Slot
from contextengine_server.context.settled import SCRAP
from contextengine_server.context.view import View

REASON = "a later result says the same anew"
LEAST_SAVED = SCRAP
"""A mask that saves no more tokens is not worth another form; and what is larger is never left
between two summaries as a scrap, where no mask holds."""

Masks = dict[int, dict[int, Slot]]
"""What to show instead: slots by sequence, by step."""


def masks_of(view: View, tail_steps: int, revision: int | None = None) -> Masks:
    """The masks that the commit of a revision left, the newest summary's where none is named;
    `tail_steps`: the newest steps of that moment that stay as they are."""
    if revision is None:
        revision = max((summary.created for summary in view.summaries), default=0)
    if not revision or not view.observations.stale:
        return {}
    return _masks(view, revision, steps_before(view, revision) - tail_steps)


def coming_masks(view: View, tail_steps: int) -> Masks:
    """The masks that a commit would leave now."""
    return _masks(view, maxsize, view.steps - tail_steps)


def saved_by(view: View, masks: Masks) -> dict[int, int]:
    """The tokens that masks save, by step."""
    return {step: saved_in(view.atom(step), slots) for step, slots in masks.items()}


def saved_in(atom: Atom, slots: dict[int, Slot]) -> int:
    """The tokens that forms of its messages save of a step."""
    return sum(
        slot.tokens - slots[slot.sequence].tokens for slot in atom.slots if slot.sequence in slots
    )


def _masks(view: View, revision: int, before: int) -> Masks:
    """The masks over what was stale before a revision, in steps before this one."""
    first, reads, masks = max(view.raw_from, view.base), view.observations, Masks()
    if before <= first:
        return masks
    begins = view.first_of(first) if view.by_sequence else 0
    stays = set(view.must_stay())
    for sequence in reads.sequences[bisect_left(reads.sequences, begins or 0) :]:
        message = reads.stale[sequence]
        step = message.step
        if not first <= step < before or step in stays:
            continue
        replaced = message.at(revision)
        if not replaced:
            continue
        slot = view.atom(step).slot_of(sequence)
        if slot is None or slot.tokens <= LEAST_SAVED:
            continue
        shown = message.shown(replaced)
        if slot.tokens - shown.tokens > LEAST_SAVED:
            masks.setdefault(step, {})[sequence] = shown
    return masks


def steps_before(view: View, revision: int) -> int:
    """How many steps there were before a revision."""
    return min(view.base + bisect_left(view.atoms, revision, key=_created), view.steps)


def _created(atom: Atom) -> int:
    return atom.entries[0].created if atom.entries else 0
