"""Results that later ones stand for: a marker is shown in place of them (a form of the message).

A mask moves with compactions and with nothing else: what was stale when a summary was committed,
outside the tail of that moment, is masked from then on. A summary begins the list anew anyway, so
masks cost no beginning of their own; and since they follow from the commit's revision and the
messages alone, a restart changes nothing, and none is lifted but by undoing.

Only history behind the summaries is masked: there a result and what stands for it are both at hand.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from sys import maxsize
from typing import NamedTuple

from contextengine_server.context.atom import Atom
from contextengine_server.context.message import Slot
from contextengine_server.context.observations import StaleMessage
from contextengine_server.context.settled import SCRAP
from contextengine_server.context.view import View

REASON = "a later result says the same anew"
LEAST_SAVED = SCRAP
"""A mask that saves no more tokens is not worth another form; and what is larger is never left
between two summaries as a scrap, where no mask holds."""

Masks = dict[int, dict[int, Slot]]
"""What to show instead: slots by sequence, by step."""
_KEPT = 16
"""Of so many moments it is kept what was masked then: more than plans look back at."""


class Masked(NamedTuple):
    """What is masked, for whoever looks for some steps of it."""

    first: int
    """From which step on."""
    masks: Masks
    """Nobody changes them: plans share them."""
    steps: Sequence[int]
    """Theirs, rising."""

    def behind(self, first: int) -> Masked:
        """What of it is masked from a later step on."""
        steps = self.steps[bisect_left(self.steps, first) :]
        return Masked(first, {step: self.masks[step] for step in steps}, steps)


_NOTHING = Masked(0, {}, ())


def masks_of(view: View, tail_steps: int, revision: int | None = None) -> Masks:
    """The masks that the commit of a revision left, the newest summary's where none is named;
    `tail_steps`: the newest steps of that moment that stay as they are."""
    return masking_of(view, tail_steps, revision).masked().masks


def masking_of(view: View, tail_steps: int, revision: int | None = None) -> Masking:
    """What works out the same, and keeps it."""
    if revision is None:
        revision = max((summary.created for summary in view.summaries), default=0)
    if not revision or not view.observations.stale:
        return Masking(view, 0, 0)
    return Masking(view, revision, steps_before(view, revision) - tail_steps)


def masking_moment(view: View, revision: int) -> tuple[int, int]:
    """What of a revision decides about its masks: commits between which nothing came that could be
    masked, or stand for what is, leave the same."""
    if not revision or not view.observations.stale:
        return 0, 0
    return steps_before(view, revision), view.observations.before_revision(revision)


def coming_masks(view: View, tail_steps: int) -> Masks:
    """The masks that a commit would leave now."""
    return Masking(view, maxsize, view.steps - tail_steps).masked().masks


def saved_by(view: View, masks: Masks) -> dict[int, int]:
    """The tokens that masks save, by step."""
    return {step: saved_in(view.atom(step), slots) for step, slots in masks.items()}


def saved_in(atom: Atom, slots: dict[int, Slot]) -> int:
    """The tokens that forms of its messages save of a step."""
    return sum(
        slot.tokens - slots[slot.sequence].tokens for slot in atom.slots if slot.sequence in slots
    )


class Masking:
    """The masks over what was stale before a revision, in steps before one."""

    def __init__(self, view: View, revision: int, before: int) -> None:
        self._view, self._revision, self._before = view, revision, before
        self._first = max(view.raw_from, view.base)
        stays = view.must_stay() if before > self._first else ()
        self._stays = frozenset(step for step in stays if step < before)

    def masked(self) -> Masked:
        """All of them, worked out once for all plans until something comes that moves a mask:
        commits before which nothing else came leave the same, behind what they cover. Work in
        proportion to all stale results, where it is not known yet."""
        if self._before <= self._first:
            return _NOTHING
        view, reads = self._view, self._view.observations
        stale = reads.before_revision(self._revision)
        key = self._before, stale, self._stays, view.late_mark
        known: dict[Hashable, Masked] = reads.masked
        masked = known.get(key)
        if masked is not None and masked.first == self._first:
            return masked
        if masked is None or masked.first > self._first:
            masks = self._masks()
            masked = Masked(self._first, masks, sorted(masks))
        else:
            masked = masked.behind(self._first)
        if len(known) >= _KEPT:
            known.clear()  # at once: several threads may plan
        known[key] = masked
        return masked

    def _masks(self) -> Masks:
        masks = Masks()
        for sequence, message in self._stale():
            shown = self._mask(sequence, message)
            if shown is not None:
                masks.setdefault(message.step, {})[sequence] = shown
        return masks

    def _stale(self) -> Iterator[tuple[int, StaleMessage]]:
        """The stale results from the first step on and some before it, by sequence."""
        view, reads = self._view, self._view.observations
        if self._before > self._first:
            begins = view.first_of(self._first) if view.by_sequence else 0
            for sequence in reads.sequences[bisect_left(reads.sequences, begins or 0) :]:
                yield sequence, reads.stale[sequence]

    def _mask(self, sequence: int, message: StaleMessage) -> Slot | None:
        if not self._first <= message.step < self._before or message.step in self._stays:
            return None
        replaced = message.at(self._revision)
        if not replaced:
            return None
        slot = self._view.atom(message.step).slot_of(sequence)
        if slot is None or slot.tokens <= LEAST_SAVED:
            return None
        shown = message.shown(replaced)
        return shown if slot.tokens - shown.tokens > LEAST_SAVED else None


def steps_before(view: View, revision: int) -> int:
    """How many steps there were before a revision."""
    return min(view.base + bisect_left(view.atoms, revision, key=_created), view.steps)


def _created(atom: Atom) -> int:
    return atom.entries[0].created if atom.entries else 0
