"""A newest user message that alone exceeds the budget's cell: its head and tail around an honest
marker (docs/semantics.md#pasted-messages), so that a pasted log does not leave a turn without any
context.

Whether it is shown so, and how much of it, follows from the message and the cell alone, so it stays
as it is through all calls of its turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from contextengine_server.context.atom import Atom
from contextengine_server.context.message import Form, Shaper, Slot
from contextengine_server.context.shares import cut_to
from contextengine_server.context.view import View

SHARE = 2
"""It is given this part (a half) of the cell at most; more where that does not hold a marker."""


def with_bounded_prompt(view: View, room: int, shaper: Shaper) -> tuple[View, int]:
    """The view with its newest user message head and tail where that alone exceeds the room; and
    the characters that are shown of it, 0 where it stands as it is. Tokens in the reference
    encoding."""
    step = view.user_step
    if step < 0 or not view.holds(step):
        return view, 0
    atom = view.atom(step)
    if atom.tokens <= room or atom.must_stay or step in view.pinned:
        return view, 0
    place = next((at for at, slot in enumerate(atom.slots) if _is_said(atom, slot)), None)
    if place is None:
        return view, 0
    slot = atom.slots[place]
    rest = atom.tokens - slot.tokens
    for part in (room // SHARE, room):
        shown, chars = _cut(atom, slot, part - rest, shaper)
        if shown is not None:
            return in_place(view, atom, {place: shown}), chars
    return view, 0


def _is_said(atom: Atom, slot: Slot) -> bool:
    """True for the whole message of a user."""
    return slot.form == Form.VERBATIM and any(
        entry.sequence == slot.sequence and entry.traits.says and not entry.traits.sealed
        for entry in atom.entries
    )


def _cut(atom: Atom, slot: Slot, target: int, shaper: Shaper) -> tuple[Slot | None, int]:
    """The message in no more than so many tokens, and the characters of it that this leaves; None
    where so few cannot be had."""
    entry = next(entry for entry in atom.entries if entry.sequence == slot.sequence)
    show = slot.bounded or partial(shaper.head_and_tail, entry)
    return cut_to(show, len(entry.body) * target // max(1, slot.tokens), target)


def in_place(view: View, atom: Atom, shown: Mapping[int, Slot]) -> View:
    """The view with other slots at places of an atom, and all sums behind it moved."""
    delta = sum(slot.tokens - atom.slots[place].tokens for place, slot in shown.items())
    changed = atom.clone()
    changed.slots = [shown.get(place, slot) for place, slot in enumerate(atom.slots)]
    changed.tokens += delta
    if atom.step < view.base:
        return replace(view, anchors={**view.anchors, atom.step: changed})
    atoms = list(view.atoms)
    atoms[atom.step - view.base] = changed
    if view.covering(atom.step) is not None:
        return replace(view, atoms=atoms)
    for at in range(atom.step - view.base + 1, len(atoms)):
        atoms[at] = atoms[at].clone()
        atoms[at].start += delta
    summaries = [
        summary.shifted(delta) if summary.first_step > atom.step else summary
        for summary in view.summaries
    ]
    return replace(view, atoms=atoms, summaries=summaries, total=view.total + delta)
