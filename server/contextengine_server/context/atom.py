"""Atoms: messages that stand or fall together. Their edges are the only safe cut points."""

from __future__ import annotations

from dataclasses import dataclass, field

from .message import Entry, Role, Slot


@dataclass(slots=True, eq=False)
class AtomCall:
    """A tool call and where its result is shown."""

    id: str
    entry: Entry
    index: int
    """Its place among the entry's calls."""
    answered: bool = False


@dataclass(slots=True, eq=False)
class Atom:
    """An assistant message with its results, reasoning with what it produced, or one other message.

    `slots` is what it shows, in order; `entries` whose messages it holds, in order of arrival. A
    message that is not shown (an orphan result) is in `dropped` of the atom it arrived behind, with
    the reason.
    """

    step: int
    """Its ordinal in the view, from 0."""
    start: int
    """The running token sum before it."""
    first: int
    """The sequence that begins it."""
    tokens: int = 0
    slots: list[Slot] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    calls: list[AtomCall] = field(default_factory=list)
    dropped: list[tuple[Entry, str]] = field(default_factory=list)
    closed: bool = False
    """True once anything but results followed: calls that stood open by then are abandoned."""
    user: bool = False
    """Holds a user's message."""
    pinned: bool = False
    leading: bool = False
    """Belongs to the system and developer messages that lead the view."""
    growing: bool = False
    """Holds reasoning whose product has not arrived."""
    note: bool = False
    """Shows a late result of a call that was summarized by then."""
    late: tuple[tuple[int, int], ...] = ()
    """(sequence, the first sequence of the atom that it answers) of what came late and is said of
    this atom by its row."""

    @property
    def end(self) -> int:
        """The running token sum behind it."""
        return self.start + self.tokens

    @property
    def open(self) -> list[AtomCall]:
        """Calls without a result."""
        return [call for call in self.calls if not call.answered]

    @property
    def pending(self) -> bool:
        """True while its open calls may still be answered in their place."""
        return not self.closed and any(not call.answered for call in self.calls)

    @property
    def replies(self) -> bool:
        """True where it begins with what the model said."""
        return bool(self.entries) and self.entries[0].traits.role == Role.ASSISTANT

    def open_places(self) -> dict[str, list[int]]:
        """The places of the calls that may still be answered in their place, by id."""
        places: dict[str, list[int]] = {}
        for place, call in enumerate(() if self.closed else self.calls):
            if not call.answered:
                places.setdefault(call.id, []).append(place)
        return places

    def answer_late(self, call_id: str, slot: Slot, entry: Entry) -> int:
        """Shows a late result in the place of the synthetic one; by how many tokens it grows."""
        index = next(
            at for at, one in enumerate(self.slots) if one.synthetic and one.call_id == call_id
        )
        delta = slot.tokens - self.slots[index].tokens
        self.slots[index] = slot
        self.tokens += delta
        if self.entries[-1] is not entry:  # another result in it may stand here already
            self.entries.append(entry)
        next(call for call in self.open if call.id == call_id).answered = True
        return delta

    def clone(self) -> Atom:
        """A copy to work on, so that memory changes only after the commit."""
        return Atom(
            self.step, self.start, self.first, self.tokens, list(self.slots), list(self.entries),
            [AtomCall(c.id, c.entry, c.index, c.answered) for c in self.calls], list(self.dropped),
            self.closed, self.user, self.pinned, self.leading, self.growing, self.note, self.late,
        )  # fmt: skip

    def slot_of(self, sequence: int) -> Slot | None:
        """Where it shows a message; None: it does not."""
        return next((slot for slot in self.slots if slot.sequence == sequence), None)

    def show(self, slot: Slot) -> None:
        """Adds a slot at the end."""
        self.slots.append(slot)
        self.tokens += slot.tokens
