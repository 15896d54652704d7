"""Messages over a cap, which are shown head and tail wherever they are shown (law 6); so are the
large messages of a step that is over a cap as a whole.

Whether a message is over its cap follows from its step and the budget's cell alone, so the form
never comes and goes. The one exception is the newest step while calls of it stand open: it is
verbatim until they are answered (law 2).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterator, Mapping, Sequence, ValuesView
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from contextengine_server.context.atom import Atom
from contextengine_server.context.budget import cell as on_grid
from contextengine_server.context.budget import cut_to, level
from contextengine_server.context.epoch import digest
from contextengine_server.context.lawful import Saved
from contextengine_server.context.message import MIN_CAP_CHARS, Slot
from contextengine_server.context.view import View

from .masks import REASON as STALE
from .masks import Masked, Masks, masking_moment, masking_of, masks_of, saved_in

MAX_CAP_CHARS = 100_000
SHARE = 0.8
CHARS_PER_TOKEN = 3.5
STEP_SHARE = 2
"""The messages of a step take no more than this part (a half) of the cell together, or than one may
take alone where that is more: the next step is to have room beside it."""
LEAST_SHARE = 500
"""No message is cut to fewer tokens than this for the sake of its neighbours."""
REASON = "over its cap: head and tail"

Forms = Mapping[int, Slot]
"""What to show instead of messages of a step, by sequence."""
NONE: Forms = {}
NO_FORMS: Mapping[int, Forms] = {}


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
    reasons: dict[int, str] = field(default_factory=dict)
    """Why, by step."""
    masks: Masks = field(default_factory=dict)
    """Those that are masks."""
    grown: int = 0
    """The tokens that forms have more than the messages themselves: those that say that there is
    nothing."""

    def name(self, view: View, first: int) -> str:
        """Names, for the epoch, what of it may have been shown verbatim before: what is masked,
        user messages, while they were the newest, and what was there while calls of its step stood
        open. All else was over the cap from its first assembly on."""
        changed: list[int | str] = [
            slot.hash.hex()
            for step, slots in self.masks.items()
            if step >= first
            for slot in slots.values()
        ]
        for step, slots in sorted(self.forms.items()):
            atom = view.atom(step)
            if step >= first and atom.user:
                changed += slots
            elif step >= first and atom.calls:
                # Nothing stood open any more when the last message came; or something does yet.
                last = 0 if atom.open else atom.entries[-1].sequence
                changed += [sequence for sequence in slots if sequence != last]
        return digest(changed).hex() if changed else ""


def bounds_of(view: View, cell: int, arrived: Mapping[int, Forms] = NO_FORMS) -> Bounds:
    """The messages over the cap of a cell, as far back as the window holds; and, besides, forms
    that messages have whatever the cell (`arrived`, by step)."""
    bounds = Bounds()
    if not view.large and not arrived:
        return bounds
    stays = set(view.intent())
    for step in sorted({*view.large, *arrived}) if arrived else view.large:
        atom = view.atom(step)
        forms = _bounded(view, atom, step, cell, stays, arrived.get(step, NONE))
        if forms:
            bounds.forms[step] = forms
            bounds.saved[step] = saved_in(atom, forms)
            bounds.reasons[step] = REASON
            if step in arrived:
                bounds.grown += _grown(atom, forms)
    return bounds


def _bounded(
    view: View, atom: Atom, step: int, cell: int, stays: Container[int], arrived: Forms = NONE
) -> dict[int, Slot]:
    if step in stays or atom.pending or view.covering(step) is not None:
        return {}
    return forms_of(atom, cell, arrived)


class SavedByStep(Saved):
    """What `short_forms` of the same saves, worked out for the steps that are asked for: of a long
    view those near a cut are, and plans look at it as it was after each of many commits."""

    def __init__(self, view: View, cell: int, tail_steps: int, revision: int) -> None:
        self._view, self._cell = view, cell
        self._whole = partial(short_forms, view, cell, tail_steps, revision)
        self._masking = masking_of(view, tail_steps, revision)
        self._stays = frozenset(view.intent())
        self._known: dict[int, int | None] = {}

    @cached_property
    def _masked(self) -> Masked:
        return self._masking.masked()

    def __getitem__(self, step: int) -> int:
        saved: int | None = self.get(step)
        if saved is None:
            raise KeyError(step)
        return saved

    def get(self, step: int, default: Any = None) -> Any:
        if step not in self._known:
            self._known[step] = self._of(step)
        saved = self._known[step]
        return default if saved is None else saved

    def within(self, first: int, last: int) -> list[int]:
        masked = _between(self._masked.steps, first, last)
        over = _between(self._view.large, first, last)
        return sorted({*over, *masked} if over else masked, reverse=True)

    def _of(self, step: int) -> int | None:
        large = self._view.large
        at, forms, atom = bisect_left(large, step), NONE, self._view.atom(step)
        if at < len(large) and large[at] == step:
            forms = _bounded(self._view, atom, step, self._cell, self._stays)
        forms = {**forms, **self._masked.masks.get(step, NONE)}
        return saved_in(atom, forms) if forms else None

    def __iter__(self) -> Iterator[int]:
        return iter(self._whole().saved)

    def __len__(self) -> int:
        return len(self._whole().saved)

    def values(self) -> ValuesView[int]:
        return self._whole().saved.values()


def _between(steps: Sequence[int], first: int, last: int) -> Sequence[int]:
    return steps[bisect_left(steps, first) : bisect_right(steps, last)]


def saved_after(view: View, cell: int, tail_steps: int) -> Callable[[int], SavedByStep]:
    """What `short_forms` saves after the commit of each revision. Those that leave the same have
    one answer: compactions make many."""
    known: dict[tuple[int, int], SavedByStep] = {}

    def after(revision: int) -> SavedByStep:
        moment = masking_moment(view, revision)
        if moment not in known:
            known[moment] = SavedByStep(view, cell, tail_steps, revision)
        return known[moment]

    return after


def short_forms(view: View, cell: int, tail_steps: int, revision: int | None = None) -> Bounds:
    """The messages over the cap of a cell, and the results that later ones stand for, since the
    commit of a revision; of the newest summary where none is named."""
    masks = masks_of(view, tail_steps, revision)
    return with_masks(bounds_of(view, cell), view, masks, STALE)


def with_masks(bounds: Bounds, view: View, masks: Masks, reason: str) -> Bounds:
    """The bounds with masks besides; a message that has both is masked."""
    for step, slots in masks.items():
        forms = bounds.forms.get(step, {}) | slots
        bounds.forms[step] = forms
        bounds.masks[step] = slots
        bounds.saved[step] = saved_in(view.atom(step), forms)
        both = f"{REASON}, or {reason}"
        bounds.reasons[step] = reason if len(forms) == len(slots) else both
    return bounds


def forms_of(atom: Atom, cell: int, arrived: Forms = NONE) -> dict[int, Slot]:
    """What to show of a step instead of messages over the cap of a cell, its own or the step's: by
    sequence. What has a form already has another only where that is shorter."""
    cap, forms = cap_chars(cell), dict(arrived)
    for slot in atom.slots:
        before = forms.get(slot.sequence)
        if slot.bounded is None or (before is not None and _within(before, cap)):
            continue
        # Results that come in one message may have as much as those that come each in its own.
        shown = slot.bounded(cap, each=True)
        # Of what is hardly over its cap, the marker may take more than the cut saves.
        if shown is not None and shown.tokens < (before or slot).tokens:
            forms[slot.sequence] = shown
    return forms | _shared(atom, forms, max(cell // STEP_SHARE, int(cap / CHARS_PER_TOKEN)))


def _grown(atom: Atom, forms: Forms) -> int:
    return sum(
        max(0, forms[slot.sequence].tokens - slot.tokens)
        for slot in atom.slots
        if slot.sequence in forms
    )


def _within(slot: Slot, cap: int) -> bool:
    return slot.tokens * CHARS_PER_TOKEN <= cap


def _shared(atom: Atom, forms: dict[int, Slot], room: int) -> dict[int, Slot]:
    """Shorter forms of the step's large messages where it exceeds the room with the forms that it
    has."""
    large = [slot for slot in atom.slots if slot.bounded is not None]
    alone = len(large) == 1 and not any(len(entry.traits.results) > 1 for entry in atom.entries)
    sizes = [forms.get(slot.sequence, slot).tokens for slot in large]
    whole = sum(forms.get(slot.sequence, slot).tokens for slot in atom.slots)
    if not large or alone or whole <= room:
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
