"""A last step that does not fit: its messages share what everything else that must be shown leaves
(docs/semantics.md#large-steps).

No compaction takes from the last step, so without this a step of several large results would be
over budget for ever. It is the last resort: an engine that shortens older messages by its own rule
has done so before.
"""

from __future__ import annotations

from functools import partial

import msgspec

from contextengine_server.context.atom import Atom
from contextengine_server.context.budget import cell as on_grid
from contextengine_server.context.budget import cut_to, level
from contextengine_server.context.epoch import digest
from contextengine_server.context.message import Entry, Form, Shaper, Slot
from contextengine_server.context.plan import Plan, Summarized, shown_at
from contextengine_server.context.view import View
from contextengine_server.engines.bounds import forms_of
from contextengine_server.session.assembly.pasted import in_place
from contextengine_server.wire.bounded import may_be_bounded


class BoundedStep(msgspec.Struct, frozen=True):
    """A view whose newest step is shorter."""

    view: View
    name: str
    """Names the forms that it is shown in, for the epoch."""


def with_bounded_step(
    view: View, plan: Plan, excess: int, shaper: Shaper, cell: int | None = None
) -> BoundedStep | None:
    """The view with its newest step so much shorter than the plan shows it. None where that cannot
    be had, or the plan shows what a compaction could take. `cell`: that of the budget, where the
    engine shortens messages over a cap once their step is done. Tokens in the reference encoding.
    """
    newest = view.steps - 1
    segment = plan.segments[-1] if plan.segments else None
    if segment is None or isinstance(segment, Summarized) or segment.last != newest:
        return None
    if not _is_least(plan, view):
        return None
    atom = view.atom(newest)
    shown = before = shown_at(segment, atom)
    if atom.pending and cell is not None:
        # As they will be shown once nothing stands open, so that none grows then.
        done = forms_of(atom, cell)
        results = {entry.sequence for entry in atom.entries if entry.traits.only_results}
        shown = [
            done.get(slot.sequence, slot) if slot.sequence in results else slot for slot in before
        ]
        excess -= sum(slot.tokens for slot in before) - sum(slot.tokens for slot in shown)
    forms = shown
    if excess > 0:
        shorter = _shorter(atom, shown, newest == view.user_step, excess, shaper)
        if shorter is None:
            return None
        forms = shorter
    changed = {place: slot for place, slot in enumerate(forms) if slot is not atom.slots[place]}
    name = digest([slot.hash.hex() for slot in changed.values()]).hex()
    return BoundedStep(in_place(view, atom, changed), f"{newest}:{name}")


def _is_least(plan: Plan, view: View) -> bool:
    """True where nothing is shown but what must stay, the newest step, and one summary at most: an
    engine that never evicts may show more, and its host is to compact."""
    needed = {*view.must_stay(), view.steps - 1}
    summaries = sum(isinstance(segment, Summarized) for segment in plan.segments)
    return summaries <= 1 and all(
        step in needed
        for segment in plan.segments
        if not isinstance(segment, Summarized)
        for step in range(segment.first, segment.last + 1)
    )


def _shorter(
    atom: Atom, shown: list[Slot], prompt: bool, excess: int, shaper: Shaper
) -> list[Slot] | None:
    """What the atom shows, so much shorter. `prompt`: it holds the newest user message, which is
    left as it is."""
    entries = {entry.sequence: entry for entry in atom.entries}
    whole = sum(slot.tokens for slot in shown)
    places = [
        place
        for place, slot in enumerate(atom.slots)
        if slot.form in (Form.VERBATIM, Form.HEAD_TAIL)
        and slot.sequence in entries
        and _may_be_cut(entries[slot.sequence], atom, prompt)
    ]
    while places:
        room = sum(shown[place].tokens for place in places) - excess
        # As if none were shorter by the engine's rule: what that takes of large ones once another
        # has arrived would lengthen the others. On the grid, so that one more small result leaves
        # the others as they are.
        share = on_grid(max(0, level([atom.slots[place].tokens for place in places], room)))
        forms, stubborn = list(shown), set()
        for place in places:
            slot = atom.slots[place]
            if shown[place].tokens > share:
                cut = _cut(slot, entries[slot.sequence], share, shaper)
                if cut is None:
                    stubborn.add(place)
                forms[place] = cut or shown[place]
        if not stubborn:
            return forms if sum(slot.tokens for slot in forms) <= whole - excess else None
        # What cannot be so short stands as it is, and the others have less.
        places = [place for place in places if place not in stubborn]
    return None


def _cut(slot: Slot, entry: Entry, tokens: int, shaper: Shaper) -> Slot | None:
    show = slot.bounded or partial(shaper.head_and_tail, entry)
    return cut_to(show, len(slot.frame) * tokens // slot.tokens, tokens)[0]


def _may_be_cut(entry: Entry, atom: Atom, prompt: bool) -> bool:
    """True for what is neither the newest user message nor stands as it is by another law; while
    calls stand open, for their results."""
    if not may_be_bounded(entry.traits) or (prompt and entry.traits.says):
        return False
    return entry.traits.only_results or not atom.pending
