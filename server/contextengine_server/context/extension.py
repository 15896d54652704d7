"""What new messages do to a view, worked out beside it: memory changes only after the commit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from .atom import Atom
from .carried import FoldState, Pause
from .message import Entry
from .observations import Observation, Pictured, Reply
from .view import Summary, View

CHECKPOINT_EVERY = 256
"""Sequences from one checkpoint of the fold to the next, about."""

MAX_ABANDONED = 16
"""Abandoned calls without a result beyond which no checkpoint is made: each would hold them all."""


class NeedsHistory(Exception):
    """A late result belongs to an atom that is not in memory: the view must be loaded with it.
    `sequence`: that of the atom's first message."""

    def __init__(self, sequence: int) -> None:
        super().__init__(sequence)
        self.sequence = sequence


class EntryFacts(msgspec.Struct, frozen=True):
    """What the store keeps of the fold for one message."""

    sequence: int
    step: int | None
    start: int | None
    late_of: int | None


class Checkpoint(msgspec.Struct, frozen=True):
    """What the fold carries just before a message that begins an atom, everything before it
    over."""

    sequence: int
    """That message's."""
    steps: int
    """How many atoms stand before it."""
    total: int
    """The running token sum before it."""
    fold: FoldState


@dataclass(slots=True)
class Extension:
    """What new messages do to a view."""

    entries: Sequence[Entry]
    replaced: dict[int, Atom] = field(default_factory=dict)
    """Atoms that were there and changed, by step."""
    added: list[Atom] = field(default_factory=list)
    facts: dict[int, EntryFacts] = field(default_factory=dict)
    """Facts of the new messages, and of old ones whose facts changed, by sequence."""
    shifts: list[tuple[int, int]] = field(default_factory=list)
    """(sequence, delta): `start` of every older atom that begins above the sequence moves by
    delta."""
    moves: list[tuple[int, int]] = field(default_factory=list)
    """The same by step: (step, delta) of the atom that changed, which those behind it follow."""
    observed: list[Observation] = field(default_factory=list)
    """What tools answered, in order."""
    pictures: list[Pictured] = field(default_factory=list)
    """The messages with pictures, in order."""
    replied: list[Reply] = field(default_factory=list)
    """What models said, in order."""
    users: list[int] = field(default_factory=list)
    """The steps of users' messages, in order."""
    pauses: list[Pause] = field(default_factory=list)
    """The messages that came after a pause, in order."""
    total: int = 0
    fold: FoldState = field(default_factory=FoldState)
    """What the fold carries on to the next message."""
    pinned: list[int] = field(default_factory=list)
    """Steps that hold a pinned message now."""
    checkpoints: list[Checkpoint] = field(default_factory=list)
    """Where the fold could be taken up again, in order."""
    checked: int = 0
    """The newest sequence that there was one before, whether or not a late result took it away; 0:
    there was none."""

    def check(self, sequence: int, steps: int, fold: FoldState) -> None:
        """Makes a checkpoint before a message that begins an atom, where one is worth it."""
        if not fold.leading_open and len(fold.abandoned) <= MAX_ABANDONED:
            table = {call: list(firsts) for call, firsts in fold.abandoned.items()}
            fold = replace(fold, abandoned=table)
            self.checkpoints.append(Checkpoint(sequence, steps, self.total, fold))
            self.checked = sequence

    def copy(self, atom: Atom) -> Atom:
        """A copy of an atom of the view, to be changed."""
        copy = atom.clone()
        copy.start += sum(delta for step, delta in self.moves if atom.step > step)
        self.replaced[copy.step] = copy
        return copy

    def shift(self, changed: Atom, delta: int) -> None:
        """Everything behind an atom moves by delta."""
        self.total += delta
        self.shifts.append((changed.first, delta))
        self.moves.append((changed.step, delta))
        # From none that stands behind it can it be found again.
        self.checkpoints = [one for one in self.checkpoints if one.sequence <= changed.first]
        for atom in (*self.added, *self.replaced.values()):
            if atom.step > changed.step:
                atom.start += delta
                if (known := self.facts.get(atom.first)) is not None:
                    self.facts[atom.first] = replace(known, start=atom.start)

    @property
    def late(self) -> bool:
        """True where a late result changed what was shown before."""
        return bool(self.shifts)


def moved_spans(summaries: list[Summary], shifts: Iterable[tuple[int, int]]) -> list[Summary]:
    """The summaries after what stands before them changed. `shifts`: see `Extension.shifts`."""
    for at, delta in shifts:
        summaries = [s.shifted(delta) if s.first_sequence > at else s for s in summaries]
    return summaries


def with_steps(steps: list[int], more: set[int]) -> list[int]:
    """Rising steps and more of them, which mostly stand behind those that are there: to fold a
    history batch by batch does not sort it once a batch."""
    new = sorted(step for step in more if not _among(steps, step))
    if not new:
        return steps
    return [*steps, *new] if not steps or new[0] > steps[-1] else sorted([*steps, *new])


def _among(steps: list[int], step: int) -> bool:
    at = bisect_left(steps, step)
    return at < len(steps) and steps[at] == step


def move(view: View, change: Extension) -> None:
    """Brings what an extension changes of earlier messages into the view."""
    if change.moves and view.lent:
        view.atoms, view.lent = [atom.clone() for atom in view.atoms], False
    for step, delta in change.moves:
        for atom in view.atoms[max(0, step + 1 - view.base) :]:
            atom.start += delta
    if change.shifts:
        view.summaries = moved_spans(view.summaries, change.shifts)
    for at, delta in change.shifts:
        view.covered = [c.shifted(delta) if c.last > at else c for c in view.covered]
    if change.replaced and any(view.atoms is one for one in view.read):
        view.atoms = list(view.atoms)
    for step, atom in change.replaced.items():
        view.atoms[step - view.base] = atom  # no atom before the window is reached
