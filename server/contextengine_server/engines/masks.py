"""Results that later ones stand for: a marker is shown in place of them (a form of the message).

A mask moves with compactions and with nothing else: what was stale when a summary was committed,
outside the tail of that moment, is masked from then on. A summary begins the list anew anyway, so
masks cost no beginning of their own; and since they follow from the commit's revision and the
messages alone, a restart changes nothing, and none is lifted but by undoing.

Only history behind the summaries is masked: there a result and what stands for it are both at hand.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from sys import maxsize

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


def masks_of(view: View, tail_steps: int, revision: int | None = None) -> Masks:
    """The masks that the commit of a revision left, the newest summary's where none is named;
    `tail_steps`: the newest steps of that moment that stay as they are."""
    return masking_of(view, tail_steps, revision).masks()


def masking_of(view: View, tail_steps: int, revision: int | None = None) -> Masking:
    """What says the same of single steps."""
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
    return Masking(view, maxsize, view.steps - tail_steps).masks()


def newest_revision(view: View) -> int:
    """That of the newest message in memory: what a later one leaves it does not say."""
    newest = _created(view.atoms[-1]) if view.atoms else 0
    answers = view.observations.all
    return max(newest, answers[-1].created) if answers else newest


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
        self._stays = frozenset(view.must_stay()) if before > self._first else frozenset[int]()

    def masks(self) -> Masks:
        """All of them: work in proportion to all stale results."""
        masks = Masks()
        for sequence, message in self._stale(self._first):
            shown = self._mask(sequence, message)
            if shown is not None:
                masks.setdefault(message.step, {})[sequence] = shown
        return masks

    def steps(self, first: int, last: int) -> Iterator[int]:
        """The steps from `first` to `last` that may have some; one may come more than once."""
        if first < self._before:
            stale = (message.step for _, message in self._stale(first))
            yield from (step for step in stale if first <= step <= last)

    def _stale(self, first: int) -> Iterator[tuple[int, StaleMessage]]:
        """The stale results from a step on and some before it, by sequence."""
        view, reads = self._view, self._view.observations
        if self._before > self._first:
            begins = view.first_of(first) if view.by_sequence else 0
            for sequence in reads.sequences[bisect_left(reads.sequences, begins or 0) :]:
                yield sequence, reads.stale[sequence]

    def of(self, step: int) -> dict[int, Slot]:
        """Those of one step, by sequence: work in proportion to its messages."""
        stale, masks = self._view.observations.stale, dict[int, Slot]()
        if not self._first <= step < self._before:
            return masks
        for slot in self._view.atom(step).slots:
            message = stale.get(slot.sequence)
            if message is not None and message.step == step:
                shown = self._mask(slot.sequence, message)
                if shown is not None:
                    masks[slot.sequence] = shown
        return masks

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
