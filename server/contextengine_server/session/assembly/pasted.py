"""A user message that must stay and alone exceeds the budget's cell, the newest or one that is
pinned: its head and tail around an honest marker (docs/semantics.md#pasted-messages), so that a
pasted log does not leave a turn without any context, nor a pinned one every turn from then on.

Whether it is shown so, and how much of it, follows from the message and the cell alone, so it stays
as it is through all calls of its turn, or for as long as it is pinned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from msgspec import structs

from contextengine_server.context.atom import Atom
from contextengine_server.context.budget import cut_to
from contextengine_server.context.carried import shifted
from contextengine_server.context.message import Form, Shaper, Slot
from contextengine_server.context.view import View

SHARE = 2
"""It is given this part (a half) of the cell at most; more where that does not hold a marker."""


def with_bounded_prompt(view: View, room: int, shaper: Shaper) -> tuple[View, dict[int, int]]:
    """The view with user messages that must stay head and tail, each where it alone exceeds the
    room; and the characters that are shown of each, by step. Tokens in the reference encoding."""
    chars_by_step: dict[int, int] = {}
    for step in sorted({*view.pinned, view.user_step}):
        if step >= view.leading and view.holds(step):
            view, chars = _with_bounded(view, step, room, shaper)
            if chars:
                chars_by_step[step] = chars
    return view, chars_by_step


def _with_bounded(view: View, step: int, room: int, shaper: Shaper) -> tuple[View, int]:
    """The view with a step's user message head and tail; and its characters, 0 where it stands as
    it is."""
    atom = view.atom(step)
    if atom.tokens <= room:
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
    """True for the whole message of a user, base64 in it as what it is."""
    return slot.form in (Form.VERBATIM, Form.HEAD_TAIL) and any(
        entry.sequence == slot.sequence and entry.traits.says for entry in atom.entries
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
    atoms, anchors = list(view.atoms), dict(view.anchors)
    if atom.step < view.base:
        anchors[atom.step] = changed
    else:
        atoms[atom.step - view.base] = changed
    if view.covering(atom.step) is not None:
        return replace(view, atoms=atoms, anchors=anchors)
    for at in range(max(0, atom.step - view.base + 1), len(atoms)):
        atoms[at] = _moved(atoms[at], delta)
    behind = {step: _moved(one, delta) for step, one in anchors.items() if step > atom.step}
    anchors.update(behind)
    summaries = [
        summary.shifted(delta) if summary.first_step > atom.step else summary
        for summary in view.summaries
    ]
    fold = structs.replace(
        view.fold,
        reigns=shifted(view.fold.reigns, atom.start, delta),
        peaks=shifted(view.fold.peaks, atom.start, delta),
    )
    total = view.total + delta
    return replace(view, atoms=atoms, anchors=anchors, summaries=summaries, total=total, fold=fold)


def _moved(atom: Atom, delta: int) -> Atom:
    copy = atom.clone()
    copy.start += delta
    return copy
