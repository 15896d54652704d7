"""What the next reply answers does not fit: its messages share what everything else that must be
shown leaves (docs/semantics.md#large-steps).

That is the last step, and with it the model's last calls with their results, or a request, where
only notices came behind them. No compaction takes from it, so without this a step of several large
results would be over budget for ever. It is the last resort: an engine that shortens older messages
by its own rule has done so before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from contextengine_server.context.atom import Atom
from contextengine_server.context.budget import LEAST_CHARS, cut_to, level
from contextengine_server.context.budget import cell as on_grid
from contextengine_server.context.epoch import digest
from contextengine_server.context.message import Entry, Form, Shaper, Slot
from contextengine_server.context.plan import Plan, Summarized, shown_at
from contextengine_server.context.view import View
from contextengine_server.engines.bounds import forms_of
from contextengine_server.session.assembly.pasted import in_place
from contextengine_server.wire.bounded import may_be_bounded

_CUT = (Form.VERBATIM, Form.HEAD_TAIL)
"""What may be shown shorter: a message as it came, or one that is shortened already."""


class BoundedStep(msgspec.Struct, frozen=True):
    """A view whose newest steps are shorter."""

    view: View
    name: str
    """Names the forms that they are shown in, for the epoch."""


class _Item(msgspec.Struct, frozen=True, eq=False):
    """What one of these steps shows."""

    atom: Atom
    place: int
    """Its place among the atom's slots."""
    entry: Entry | None
    """Whose message it is, where that may be cut."""

    @property
    def slot(self) -> Slot:
        """The message as it came."""
        return self.atom.slots[self.place]


def with_bounded_step(
    view: View, plan: Plan, excess: int, shaper: Shaper, cell: int | None = None
) -> BoundedStep | None:
    """The view with what the next reply answers so much shorter than the plan shows it, or as
    short as it can be. None where the plan shows what a compaction could take. `cell`: that of the
    budget, where the engine shortens messages over a cap once their step is done. Tokens in the
    reference encoding.
    """
    newest = view.steps - 1
    segment = plan.segments[-1] if plan.segments else None
    if segment is None or isinstance(segment, Summarized) or segment.last != newest:
        return None
    if not _is_least(plan, view):
        return None
    atoms = [view.atom(at) for at in range(max(view.unanswered, view.raw_from), view.steps)]
    items = [item for atom in atoms for item in _items(atom, atom.step == view.user_step)]
    listed = [_shown(plan, atom) for atom in atoms]
    if None in listed:
        return None  # an engine that goes by the newest step alone
    shown = before = [slot for slots in listed for slot in slots or ()]
    last = atoms[-1]
    if last.pending and cell is not None:
        # As they will be shown once nothing stands open, so that none grows then.
        done = forms_of(last, cell)
        results = {entry.sequence for entry in last.entries if entry.traits.only_results}
        shown = [
            done.get(slot.sequence, slot) if slot.sequence in results else slot for slot in before
        ]
        excess -= sum(slot.tokens for slot in before) - sum(slot.tokens for slot in shown)
    forms = shown
    if excess > 0:
        forms = _shorter(items, shown, excess, shaper)
    changed: dict[int, dict[int, Slot]] = {}
    for item, slot in zip(items, forms, strict=True):
        if slot is not item.slot:
            changed.setdefault(item.atom.step, {})[item.place] = slot
    for step, slots in changed.items():
        view = in_place(view, view.atom(step), slots)
    hashes = [slot.hash.hex() for slots in changed.values() for slot in slots.values()]
    return BoundedStep(view, f"{newest}:{digest(hashes).hex()}")


def _items(atom: Atom, prompt: bool) -> list[_Item]:
    """What an atom shows. `prompt`: it holds the newest user message, which is left as it is."""
    entries = {entry.sequence: entry for entry in atom.entries if _may_be_cut(entry, atom, prompt)}
    return [
        _Item(atom, place, entries.get(slot.sequence) if slot.form in _CUT else None)
        for place, slot in enumerate(atom.slots)
    ]


def _shown(plan: Plan, atom: Atom) -> list[Slot] | None:
    """What a plan shows of an atom; None: nothing."""
    for segment in reversed(plan.segments):
        if not isinstance(segment, Summarized) and segment.first <= atom.step <= segment.last:
            return shown_at(segment, atom)
    return None


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
    items: Sequence[_Item], before: Sequence[Slot], excess: int, shaper: Shaper
) -> list[Slot]:
    """What is shown of the items, so much shorter, or as much as can be."""
    shown = list(before)
    places = [place for place, item in enumerate(items) if item.entry is not None]
    while places:
        room = sum(shown[place].tokens for place in places) - excess
        # As if none were shorter by the engine's rule: what that takes of large ones once another
        # has arrived would lengthen the others. On the grid, so that one more small result leaves
        # the others as they are.
        share = on_grid(max(0, level([items[place].slot.tokens for place in places], room)))
        large = [place for place in places if shown[place].tokens > share]
        cuts = {place: _cut(items[place], share, shaper) for place in large}
        stubborn = {place for place, cut in cuts.items() if cut is None}
        if not stubborn:
            return [cuts.get(place) or slot for place, slot in enumerate(shown)]
        # What cannot be so short is as short as it can be, and the others have less.
        for place in stubborn:
            least = _show(items[place], shaper)(LEAST_CHARS)
            if least is not None and least.tokens < shown[place].tokens:
                excess -= shown[place].tokens - least.tokens
                shown[place] = least
        places = [place for place in places if place not in stubborn]
    return shown


def _cut(item: _Item, tokens: int, shaper: Shaper) -> Slot | None:
    slot = item.slot
    return cut_to(_show(item, shaper), len(slot.frame) * tokens // slot.tokens, tokens)[0]


def _show(item: _Item, shaper: Shaper) -> Callable[[int], Slot | None]:
    """Shows so many characters of an item."""
    assert item.entry is not None
    return item.slot.bounded or partial(shaper.head_and_tail, item.entry)


def _may_be_cut(entry: Entry, atom: Atom, prompt: bool) -> bool:
    """True for what is neither the newest user message nor stands as it is by another law; while
    calls stand open, for their results."""
    if not may_be_bounded(entry.traits) or (prompt and entry.traits.says):
        return False
    return entry.traits.only_results or not atom.pending
