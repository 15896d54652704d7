"""A harness's own list beside what is stored (docs/semantics.md#live-lists): which of its messages
are stored ones, and what the others are.

By ids where both have them, else by what harnesses leave alone (`wire.likeness`). Items of ours
that come back are passed over. What a list leaves out is not deleted.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from contextengine_server.context import alignment
from contextengine_server.context.message import Entry, Form
from contextengine_server.context.view import View
from contextengine_server.wire.likeness import (
    Likenesses,
    ListedMessage,
    as_note,
    readdressed,
    tokens_of,
)
from contextengine_server.wire.message import Incoming

Known = dict[str, tuple[int, bytes, int]]
"""Stored messages by host id: (sequence, hash, tokens)."""


class ListAlignment(msgspec.Struct, frozen=True):
    """Where a list meets the stored view. Indexes are the list's, of ours too."""

    live: Sequence[Incoming]
    """The list, its new results under the ids that their calls are stored with."""
    start: int
    """The index of its first new message."""
    matched: dict[int, int]
    """Indexes of the list that are stored messages, by their sequence."""
    late: tuple[int, ...]
    """Indexes of results that came late: their calls are stored, and no result of theirs."""
    others: dict[int, int]
    """Indexes of messages before `start` that are not stored, by the stored message that each
    stands behind; 0: behind none."""
    keys: dict[int, bytes]
    """What the others are recognised by."""

    @property
    def whole(self) -> bool:
        """True where everything before `start` is stored."""
        return not self.late and not self.others

    def note(self, index: int) -> Incoming:
        """A message of the list as a note, for a place that a summary covers."""
        return as_note(self.live[index], self.keys[index])


class Aligner(msgspec.Struct, frozen=True):
    """Finds where lists meet stored views."""

    likenesses: Likenesses = msgspec.field(default_factory=Likenesses)

    def align(self, live: Sequence[Incoming], view: View, known: Known) -> ListAlignment | None:
        """Where the list meets the view; None where it does not. An empty view aligns with
        anything, and so does a list in which nothing is said."""
        listed = [index for index, message in enumerate(live) if not message.own]
        entries = view.entries()
        if not entries or not listed:
            return ListAlignment(live, 0 if listed else len(live), {}, (), {}, {})
        heard, stored = self._heard([live[at] for at in listed]), self._stored(view, entries)
        found = alignment.align(heard, stored)
        elsewhere = {index: known[live[index].id][0] for index in listed if live[index].id in known}
        # These are stored wherever they stand: before the window, or in another order.
        if found is None and not elsewhere:
            return None
        if found is None:
            found = alignment.Alignment({}, {}, (), (), 0)
        matched = {listed[at]: entries[place].sequence for at, place in found.matched.items()}
        matched |= {listed[at]: entries[place].sequence for at, place in found.answered.items()}
        for index, sequence in elsewhere.items():
            matched.setdefault(index, sequence)
        last = max(matched)
        late = {listed[at] for at in found.late}
        noted = self._noted(entries)
        others: dict[int, int] = {}
        keys: dict[int, bytes] = {}
        behind = 0
        for index, token in zip(listed, heard, strict=True):
            if index >= last:
                break
            if index in matched:
                behind = max(behind, matched[index])
            elif token.key in noted:
                matched[index] = noted[token.key]
            elif index not in late and not _is_orphan(live[index], token):
                others[index], keys[index] = behind, token.key
        return ListAlignment(
            self._readdressed(live, listed, heard, found, entries),
            _behind_own(live, last + 1),
            dict(sorted(matched.items())),
            tuple(sorted(late)),
            others,
            keys,
        )

    def _heard(self, messages: Sequence[Incoming]) -> list[alignment.Token]:
        return tokens_of(
            [ListedMessage(m.id, m.traits, self.likenesses.of(m.hash, m.body)) for m in messages]
        )

    def _stored(self, view: View, entries: Sequence[Entry]) -> list[alignment.Token]:
        """What the view does not show (an orphan result, say) may be in the list or not."""
        unshown = {entry.sequence for atom in view.atoms for entry, _ in atom.dropped}
        for atom in view.atoms:
            if atom.note:
                unshown |= {slot.sequence for slot in atom.slots if slot.form is Form.NOTE}
        tokens = tokens_of(
            [ListedMessage(e.id, e.traits, self.likenesses.of(e.hash, e.body)) for e in entries]
        )
        return [
            msgspec.structs.replace(token, aside=True)
            if entry.sequence in unshown and not token.aside
            else token
            for entry, token in zip(entries, tokens, strict=True)
        ]

    def _noted(self, entries: Sequence[Entry]) -> dict[bytes, int]:
        """The messages of lists that are stored as notes, by what they are recognised by."""
        noted = {
            self.likenesses.of(entry.hash, entry.body).note_of: entry.sequence for entry in entries
        }
        noted.pop(b"", None)
        return noted

    @staticmethod
    def _readdressed(
        live: Sequence[Incoming],
        listed: Sequence[int],
        heard: Sequence[alignment.Token],
        found: alignment.Alignment,
        entries: Sequence[Entry],
    ) -> Sequence[Incoming]:
        """The list with the results of stored calls under the ids that these are stored with."""
        changed, told = list(live), {*found.matched, *found.answered}
        for at, token in enumerate(heard):
            message, ids = live[listed[at]], dict[int, str]()
            if len(token.answers) < len(message.traits.results):
                continue  # one of them answers nothing, so which of them is which is not known
            for (part, call_id), (asked, number) in zip(
                message.traits.results, token.answers, strict=True
            ):
                if asked in found.matched and at not in told:
                    kept = entries[found.matched[asked]].traits.calls[number]
                    if kept != call_id:
                        ids[part] = kept
            if ids:
                changed[listed[at]] = readdressed(message, ids)
        return changed


def _is_orphan(message: Incoming, token: alignment.Token) -> bool:
    """True for results of calls that the list does not have: no list shows these."""
    return message.traits.only_results and not token.answers


def _behind_own(live: Sequence[Incoming], index: int) -> int:
    while index < len(live) and live[index].own:
        index += 1
    return index
