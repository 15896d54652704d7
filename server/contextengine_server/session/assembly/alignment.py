"""A harness's own list beside what is stored (docs/semantics.md#live-lists): which of its messages
are stored ones, and what the others are.

By ids where both have them, else by what harnesses leave alone (`wire.likeness`). Items of ours
that come back are passed over. What a list leaves out is not deleted.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from contextengine_server.context import alignment
from contextengine_server.context.message import Entry, Form
from contextengine_server.context.view import Summary, View
from contextengine_server.session.session import KnownMessage
from contextengine_server.wire.likeness import (
    Likenesses,
    ListedMessage,
    as_note,
    readdressed,
    tokens_of,
)
from contextengine_server.wire.message import Incoming
from contextengine_server.wire.slots import summary_item_id


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
    away: bool = False
    """True where the newest message that is recognised stands before what is in memory: nothing
    there speaks for what follows it, which may be stored all the same."""

    @property
    def whole(self) -> bool:
        """True where everything before `start` is stored."""
        return not self.late and not self.others

    @property
    def decided(self) -> bool:
        """True where more of the session than is in memory would tell nothing else."""
        return self.whole and not self.away

    def note(self, index: int) -> Incoming:
        """A message of the list as a note, for a place that a summary covers."""
        return as_note(self.live[index], self.keys[index])


class Aligner(msgspec.Struct, frozen=True):
    """Finds where lists meet stored views."""

    likenesses: Likenesses = msgspec.field(default_factory=Likenesses)

    def align(
        self, live: Sequence[Incoming], view: View, known: dict[str, KnownMessage]
    ) -> ListAlignment | None:
        """Where the list meets the view; None where it does not. An empty view aligns with
        anything, and so does a list in which nothing is said."""
        listed = [index for index, message in enumerate(live) if not message.own]
        entries = view.entries()
        if not entries or not listed:
            return ListAlignment(live, 0 if listed else len(live), {}, (), {}, {})
        standing = _standing(live, view.summaries)
        heard = self._heard([live[at] for at in listed], entries)
        stored = self._stored(view, entries, standing.values())
        found = _aligned(live, listed, heard, entries, stored, standing)
        elsewhere = {
            index: known[live[index].id].sequence for index in listed if live[index].id in known
        }
        # These are stored wherever they stand: before the window, or in another order.
        if found is None and not elsewhere:
            return None
        if found is None:
            found = alignment.Alignment({}, {}, (), (), 0)
        matched = {listed[at]: entries[place].sequence for at, place in found.matched.items()}
        matched |= {listed[at]: entries[place].sequence for at, place in found.answered.items()}
        for index, sequence in elsewhere.items():
            matched.setdefault(index, sequence)
        last = max([*matched, *standing])
        late = {listed[at] for at in found.late if _is_called(heard[at], found, entries)}
        told = {listed[at] for at in found.late}
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
            elif index not in told and not _is_orphan(live[index], token):
                others[index], keys[index] = behind, token.key
        return ListAlignment(
            self._readdressed(live, listed, heard, found, entries),
            _behind_own(live, last + 1),
            dict(sorted(matched.items())),
            tuple(sorted(late)),
            others,
            keys,
            away=matched.get(last, entries[0].sequence) < entries[0].sequence,
        )

    def _heard(
        self, messages: Sequence[Incoming], entries: Sequence[Entry]
    ) -> list[alignment.Token]:
        asked: set[int] = set()

        def stored(sequence: int) -> Entry | None:
            """The stored message, once: a list shows none twice, and what says that it is one costs
            as much as that is large."""
            at = bisect_left(entries, sequence, key=lambda entry: entry.sequence)
            found = at < len(entries) and entries[at].sequence == sequence
            if not found or sequence in asked:
                return None
            asked.add(sequence)
            return entries[at]

        return tokens_of(
            [ListedMessage(m.id, m.traits, self.likenesses.of_listed(m, stored)) for m in messages]
        )

    def _stored(
        self, view: View, entries: Sequence[Entry], standing: Collection[Summary]
    ) -> list[alignment.Token]:
        """What the view does not show (an orphan result, say) may be in the list or not. What a
        summary covers that stands in the list is not there in its own words, unless it must be; it
        may be, where it had to be when the summary was made."""
        unshown = {entry.sequence for atom in view.atoms for entry, _ in atom.dropped}
        for atom in view.atoms:
            if atom.note:
                unshown |= {slot.sequence for slot in atom.slots if slot.form is Form.NOTE}
        tokens = tokens_of(
            [ListedMessage(e.id, e.traits, self.likenesses.of(e.hash, e.body)) for e in entries]
        )
        asked = _asked_last(view, standing)
        covered = _covered(view, standing) - asked
        unshown |= asked
        for place, entry in enumerate(entries):
            if entry.sequence in covered:
                tokens[place] = msgspec.structs.replace(tokens[place], key=b"", aside=True)
            elif entry.sequence in unshown and not tokens[place].aside:
                tokens[place] = msgspec.structs.replace(tokens[place], aside=True)
        return tokens

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
                if asked not in found.matched or at in told:
                    continue
                calls = entries[found.matched[asked]].traits.calls
                if number < len(calls) and calls[number] != call_id:
                    ids[part] = calls[number]
            if ids:
                changed[listed[at]] = readdressed(message, ids)
        return changed


def _standing(live: Sequence[Incoming], summaries: Iterable[Summary]) -> dict[int, Summary]:
    """Indexes of the list where a summary of the view stands."""
    places = {message.id or message.hash: at for at, message in enumerate(live) if message.own}
    found: dict[int, Summary] = {}
    for summary in summaries:
        at = places.get(summary_item_id(summary.id), places.get(summary.slot.hash))
        if at is not None:
            found[at] = summary
    return found


def _covered(view: View, standing: Iterable[Summary]) -> set[int]:
    """The messages that summaries cover, without what stands in every assembly."""
    ranges = [(summary.first_step, summary.last_step) for summary in standing]
    if not ranges:
        return set()
    stays = set(view.must_stay())
    return {
        entry.sequence
        for atom in view.atoms
        if atom.step not in stays and any(first <= atom.step <= last for first, last in ranges)
        for entry in atom.entries
    }


def _asked_last(view: View, standing: Iterable[Summary]) -> set[int]:
    """The covered messages of which each was the newest of a user's when its summary was made, and
    is not any more: lists showed it beside the summary until the user's next one."""
    asked: set[int] = set()
    for summary in standing:
        behind = bisect_right(view.users, summary.last_step)
        step = view.users[behind - 1] if behind else -1
        if step < summary.first_step or behind == len(view.users):
            continue
        if view.atom(view.users[behind]).entries[0].created > summary.created:
            asked |= {entry.sequence for entry in view.atom(step).entries}
    return asked


def _aligned(
    live: Sequence[Incoming],
    listed: Sequence[int],
    heard: Sequence[alignment.Token],
    entries: Sequence[Entry],
    stored: Sequence[alignment.Token],
    standing: Mapping[int, Summary],
) -> alignment.Alignment | None:
    """Where the list meets the stored messages. A summary that stands in the list stands among
    these before the first that it covers: what follows it there follows it here, however short the
    list is and however alike its messages are to others."""
    if not standing:
        return alignment.align(heard, stored)
    sequences = [entry.sequence for entry in entries]
    in_live = [(bisect_left(listed, at), one.id) for at, one in sorted(standing.items())]
    in_stored = sorted((bisect_left(sequences, s.first_sequence), s.id) for s in standing.values())
    told, told_places = _with_marks(heard, in_live)
    kept, kept_places = _with_marks(stored, in_stored)
    found = alignment.align(told, kept)
    if found is None:
        return None

    def back(pairs: Mapping[int, int]) -> dict[int, int]:
        return {
            told_places[index]: kept_places[place]
            for index, place in pairs.items()
            if told_places[index] >= 0
        }

    late = tuple(told_places[index] for index in found.late)
    return alignment.Alignment(back(found.matched), back(found.answered), late, (), 0)


def _with_marks(
    tokens: Sequence[alignment.Token], marks: Sequence[tuple[int, str]]
) -> tuple[list[alignment.Token], list[int]]:
    """The tokens with a mark before some places, rising, each known by its id alone; and the place
    that each had, -1 for a mark."""
    marked: list[alignment.Token] = []
    places: list[int] = []
    moved: list[int] = []
    waiting = list(reversed(marks))
    for place, token in enumerate(tokens):
        while waiting and waiting[-1][0] <= place:
            marked.append(alignment.Token(b"", waiting.pop()[1], aside=True))
            places.append(-1)
        moved.append(len(marked))
        marked.append(token)
        places.append(place)
    for _, one in reversed(waiting):
        marked.append(alignment.Token(b"", one, aside=True))
        places.append(-1)
    for place in moved:
        answers = tuple((moved[at], number) for at, number in marked[place].answers)
        if answers:
            marked[place] = msgspec.structs.replace(marked[place], answers=answers)
    return marked, places


def _is_orphan(message: Incoming, token: alignment.Token) -> bool:
    """True for results of calls that the list does not have: no list shows these."""
    return message.traits.only_results and not token.answers


def _is_called(
    token: alignment.Token, found: alignment.Alignment, entries: Sequence[Entry]
) -> bool:
    """True for results whose calls are stored. What comes back under the id of a stored message may
    call what that does not; the result is then one that no list shows."""
    return all(
        number < len(entries[found.matched[asked]].traits.calls) for asked, number in token.answers
    )


def _behind_own(live: Sequence[Incoming], index: int) -> int:
    while index < len(live) and live[index].own:
        index += 1
    return index
