"""One run of the fold over messages, and how what came of it is brought into the view."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import attrgetter

from msgspec.structs import replace

from .atom import Atom, AtomCall
from .carried import (
    ALONE,
    LEAST_PAUSE_MS,
    MOST_NOTICES,
    MOST_PEAKS,
    Abandoned,
    FoldState,
    Pause,
    Peak,
    Peaks,
    Reign,
    Waiting,
    shifted,
)
from .extension import CHECKPOINT_EVERY, EntryFacts, Extension, NeedsHistory, move, with_steps
from .message import Entry, Form, Role, Shaper
from .observations import Pictured, observed, replied
from .view import View


def extend(view: View, entries: Sequence[Entry], shaper: Shaper) -> Extension:
    """What these messages, in order, would do to the view, which stays as it is. Raises
    NeedsHistory where a late result belongs to an atom that the window does not hold."""
    folder = Folder(view, shaper)
    for entry in entries:
        folder.add(entry)
    return folder.finish(entries)


def apply(view: View, change: Extension) -> None:
    """Brings an extension into the view, after its commit."""
    if change.moves or change.shifts or change.replaced:
        move(view, change)
    view.atoms.extend(change.added)
    large: set[int] = set()
    answers: set[int] = set()
    for atom in (*change.replaced.values(), *change.added):
        for slot in atom.slots:
            if slot.bounded is not None:
                large.add(atom.step)
            if slot.answers is not None:
                answers.add(atom.step)
    if large:
        view.large = with_steps(view.large, large)
    if answers:
        view.answers = with_steps(view.answers, answers)
    if change.observed:
        view.observations.take(change.observed)
    view.observations.pictures += change.pictures
    if change.replied:
        view.replies.take(change.replied)
    view.users += change.users
    view.pauses += change.pauses
    view.total = change.total
    view.fold = change.fold
    if change.pinned:
        view.pinned = sorted({*view.pinned, *change.pinned})
    if change.entries:
        view.last_sequence = max(view.last_sequence, change.entries[-1].sequence)
        view.message_count += len(change.entries)


_bounded = attrgetter("bounded")


def behind(known: Waiting, before: Atom) -> Waiting:
    """What the next reply answers, once a step that is not the model's follows the newest."""
    if before.leading or (not known.steps and before.replies and not before.calls):
        return ALONE
    if known.steps in (-1, MOST_NOTICES):
        return Waiting(-1)
    return Waiting(known.steps + 1, known.tokens + before.tokens)


def _with_peak(peaks: Peaks, newest: Peak, atom: Atom) -> Peaks:
    """The peaks with that of the newest atom, in place of what it was before, and of those that are
    nowhere more. Over a cap it is shorter, and outdoes no other."""
    outdoes, taken = not any(map(_bounded, atom.slots)), newest.step + newest.asked
    while peaks and (
        (last := peaks[-1]).at == atom.step
        or (last.at, last.user_step) == (newest.at, newest.user_step)
        or (outdoes and last.step <= newest.step and last.step + last.asked <= taken)
    ):
        peaks = peaks[:-1]
    if len(peaks) >= MOST_PEAKS:
        return peaks[0].joined((*peaks[1:], newest))
    return (*peaks, newest)


class Folder:
    """One run of the fold over a view that stays as it is."""

    def __init__(self, view: View, shaper: Shaper) -> None:
        self.view = view
        self.shaper = shaper
        self.out = Extension((), total=view.total)
        carried = view.fold
        self.leading, self.leading_open = carried.leading, carried.leading_open
        self.user_step, self.user_peak = carried.user_step, carried.user_peak
        self.user_tokens, self.reigns = carried.user_tokens, carried.reigns
        self.late_mark, self.scattered = carried.late_mark, carried.scattered
        self.step_peak, self.peaks = carried.step_peak, carried.peaks
        self.turns, self.replies = carried.turns, carried.replies
        self.observed, self.said_ms = carried.observed, carried.said_ms
        self.waiting, self.abandoned = carried.waiting, Abandoned(carried.abandoned)
        self.current: Atom | None = view.atoms[-1] if view.atoms else None
        self.owned, self.steps = False, view.base + len(view.atoms)
        self.added: dict[int, Atom] = {}

    def finish(self, entries: Sequence[Entry]) -> Extension:
        """What these messages did, with what the fold carries on from them."""
        table = self.abandoned.changed
        table = self.view.fold.abandoned if table is None else table
        self.out.entries = entries
        self.out.fold = FoldState(
            leading=self.leading, leading_open=self.leading_open, user_step=self.user_step,
            user_tokens=self.user_tokens, reigns=self.reigns, user_peak=self.user_peak,
            abandoned=table, late_mark=self.late_mark, scattered=self.scattered,
            step_peak=self.step_peak, peaks=self.peaks, turns=self.turns, waiting=self.waiting,
            observed=self.observed, said_ms=self.said_ms, replies=self.replies,
        )  # fmt: skip
        return self.out

    def own(self) -> Atom:
        """The current atom, ours to change."""
        assert self.current is not None
        if not self.owned:
            self.current, self.owned = self.out.copy(self.current), True
        return self.current

    def begin(self, entry: Entry, *, untouched: bool = True) -> Atom:
        """A new atom at the end of the view; what stood open before is abandoned. `untouched`: the
        message has answered nothing yet, so that a checkpoint before it is one."""
        current = self.current
        if current is not None and (self.owned or current.calls or current.growing):
            self.close()
        # From a checkpoint on, nothing is known of what stands before it but what is carried.
        if self.current is not None:
            self.waiting = behind(self.waiting, self.current)
        number = entry.sequence // CHECKPOINT_EVERY
        if untouched and current is not None and number != current.first // CHECKPOINT_EVERY:
            self.out.check(entry.sequence, self.steps, self.finish(()).fold)
        if entry.traits.role == Role.ASSISTANT:
            self.waiting = ALONE
        atom = Atom(step=self.steps, start=self.out.total, first=entry.sequence)
        self.steps += 1
        self.current, self.owned = atom, True
        self.out.added.append(atom)
        self.added[atom.first] = atom
        if self.leading_open:
            if entry.traits.instructs:
                atom.leading = True
                self.leading = atom.step + 1
            else:
                self.leading_open = False
        return atom

    def close(self) -> None:
        """Nothing but results may follow open calls: whatever is open now gets synthetic
        results."""
        current = self.current
        if current is None or current.closed:
            return
        if current.growing or (current.calls and current.open):
            current = self.own()
            for call in current.open:
                slot = self.shaper.no_result(call.entry, call.index)
                current.show(slot)
                self.out.total += slot.tokens
                self.abandoned.add(call.id, current.first)
            self.measure(current)
        if self.owned:
            current.closed = True
            current.growing = False

    def join(self, atom: Atom, entry: Entry, parts: tuple[int, ...] | None) -> None:
        """The message, or these parts of it, at the end of the atom."""
        slot = self.shaper.whole(entry) if parts is None else self.shaper.parts(entry, parts)
        traits, out = entry.traits, self.out
        atom.slots.append(slot)
        atom.tokens += slot.tokens
        atom.entries.append(entry)
        out.total += slot.tokens
        if traits.role == Role.USER and (not traits.results or traits.says):
            if self.user_step not in (atom.step, -1):
                ended = Reign(self.user_step, self.user_tokens, atom.start)
                while self.reigns and self.reigns[-1].end + self.reigns[-1].tokens <= atom.start:
                    self.reigns = self.reigns[:-1]
                self.reigns = (*self.reigns, ended)
            atom.user, self.user_step = True, atom.step
            self.turns += 1
            self.out.users.append(atom.step)
        elif traits.role == Role.ASSISTANT:
            self.replies += 1
            out.replied.append(replied(atom.step, entry, self.shaper))
        if parts is None and (traits.images or traits.pictured):
            show = partial(self.shaper.replaced, entry)
            out.pictures.append(Pictured(atom.step, entry, show))
        if atom.user:
            self.user_peak = max(self.user_peak, atom.tokens)
        if atom.step == self.user_step:
            self.user_tokens = atom.tokens
        if entry.time_ms is not None:
            pause = entry.time_ms - self.said_ms if self.said_ms is not None else 0
            if traits.role == Role.ASSISTANT:
                self.said_ms = entry.time_ms
            elif pause >= LEAST_PAUSE_MS:
                out.pauses.append(Pause(atom.step, pause, entry.created))
        if traits.pinned:
            self.pin(atom, entry)
        if not (atom.pinned or atom.leading):
            self.step_peak = max(self.step_peak, atom.tokens)
            asked, most, at = self.user_tokens, 0 if atom.user else atom.tokens, atom.step
            if self.waiting.steps > 0:
                at, most = at - self.waiting.steps, most + self.waiting.tokens
                if at <= self.user_step < atom.step:
                    most -= asked
            peak = Peak(out.total, most, asked, self.user_step, at)
            self.peaks = _with_peak(self.peaks, peak, atom)
        start = atom.start if atom.first == entry.sequence else None
        out.facts[entry.sequence] = EntryFacts(entry.sequence, atom.step, start, None)

    def measure(self, atom: Atom) -> None:
        """Takes note of how large a step has become by what is not a message of its own."""
        if not (atom.pinned or atom.leading):
            self.step_peak = max(self.step_peak, atom.tokens)

    def pin(self, atom: Atom, entry: Entry) -> None:
        """A pinned message keeps its whole atom."""
        if entry.traits.pinned and not atom.pinned:
            atom.pinned = True
            self.out.pinned.append(atom.step)

    def add(self, entry: Entry) -> None:
        traits = entry.traits
        if traits.excluded:
            self.drop(entry, "labelled excluded")
            return
        if traits.results:
            self.add_results(entry)
            return
        current = self.current
        if (
            current is not None
            and current.growing
            and not current.closed
            and traits.role == Role.ASSISTANT
        ):
            atom = self.own()
        else:
            atom = self.begin(entry)
        self.join(atom, entry, None)
        atom.growing = traits.only_reasoning and traits.role == Role.ASSISTANT
        if traits.calls:
            self.call(atom, entry)

    def add_results(self, entry: Entry) -> None:
        """A message that carries results, perhaps among other parts."""
        traits = entry.traits
        here: list[int] = []
        away: list[tuple[int, str]] = []
        # A message that calls tools itself begins an atom: what it answers is late.
        open_calls = self.current.open_places() if self.current and not traits.calls else {}
        for part, call_id in traits.results:
            if open_calls.get(call_id):
                here.append(open_calls[call_id].pop(0))
            else:
                away.append((part, call_id))
        hidden = {part for part, _ in away}
        shown = tuple(index for index in range(traits.part_count) if index not in hidden)

        if here:
            atom = self.own()
            self.join(atom, entry, None if not hidden else shown)
            for place in here:
                atom.calls[place].answered = True
            if traits.carries and not hidden:
                self.observed += entry.tokens
                self.out.observed += observed(atom, entry, here, self.shaper)
            if not traits.only_results:
                self.close()
        elif shown:
            atom = self.begin(entry)
            self.join(atom, entry, shown)
            self.call(atom, entry)
        late = [one for one in away if self.abandoned.newest(one[1]) is not None]
        if late:
            self.add_late(entry, late, alone=not here and not shown)
        if entry.sequence not in self.out.facts:
            self.drop(entry, "no open call with this id")

    @staticmethod
    def call(atom: Atom, entry: Entry) -> None:
        """Its calls stand open from now on."""
        atom.calls += [AtomCall(id, entry, at) for at, id in enumerate(entry.traits.calls)]

    def drop(self, entry: Entry, rule: str) -> None:
        if self.current is None:
            # An atom that shows nothing keeps it for `explain`. What follows still leads.
            atom = self.begin(entry)
            atom.dropped.append((entry, rule))
            atom.leading, self.leading, self.leading_open = True, atom.step + 1, True
            self.out.facts[entry.sequence] = EntryFacts(entry.sequence, atom.step, atom.start, None)
            return
        self.own().dropped.append((entry, rule))
        self.out.facts[entry.sequence] = EntryFacts(entry.sequence, None, None, None)

    # Abandoned calls and late results.

    def reach(self, first: int) -> Atom:
        """An older atom, ours to change."""
        if first in self.added:
            return self.added[first]
        found = self.view.find(first)
        if found is None or found.step < self.view.base:
            raise NeedsHistory(first)
        if found.step in self.out.replaced:
            return self.out.replaced[found.step]
        atom = self.out.copy(found)
        if self.current is found:
            self.current, self.owned = atom, True
        return atom

    def add_late(self, entry: Entry, late: list[tuple[int, str]], alone: bool) -> None:
        """Results for abandoned calls: behind their calls, or as a note where the call is
        summarized by now."""
        notes: list[int] = []
        newest = 0
        atoms = {call_id: self.abandoned.newest(call_id) for _, call_id in late}
        if not alone or len(set(atoms.values())) > 1 or len(atoms) < len(entry.traits.results):
            self.scattered = entry.sequence  # its row cannot tell what of it stands where
        for part, call_id in late:
            first = self.abandoned.newest(call_id)
            if first is None:
                continue  # a second late result of the same message for one call
            newest = max(newest, first)
            if self.view.had_covered(first, entry.created):
                notes.append(part)
            else:
                atom = self.reach(first)
                whole = alone and len(entry.traits.results) == 1 and entry.traits.part_count == 1
                slot = self.shaper.whole(entry) if whole else self.shaper.parts(entry, (part,))
                self.shift(atom, atom.answer_late(call_id, slot, entry))
                self.pin(atom, entry)
                self.late_mark = max(self.late_mark, entry.sequence)
                if alone and first == newest:
                    atom.late = (*atom.late, (entry.sequence, first))
                    fact = EntryFacts(entry.sequence, atom.step, None, first)
                    self.out.facts[entry.sequence] = fact
            self.abandoned.answer(call_id)
        if notes:
            self.add_note(entry, tuple(notes), newest, alone)

    def shift(self, changed: Atom, delta: int) -> None:
        """Everything behind the atom moves by delta."""
        self.out.shift(changed, delta)
        self.reigns = shifted(self.reigns, changed.start, delta)
        self.peaks = shifted(self.peaks, changed.start, delta)
        self.measure(changed)
        if -self.waiting.steps <= changed.step - (self.steps - 1) < 0:
            self.waiting = replace(self.waiting, tokens=self.waiting.tokens + delta)

    def add_note(self, entry: Entry, parts: tuple[int, ...], late_of: int, alone: bool) -> None:
        """A note is an atom of its own, or follows what else its message shows. It never parts open
        calls from their results, nor reasoning from what it produced: it stands before them, at the
        beginning of their atom."""
        slot = self.shaper.note(entry, parts)
        current = self.current
        if current is not None and not current.closed and (current.pending or current.growing):
            atom = self.own()
            atom.slots.insert(sum(1 for s in atom.slots if s.form == Form.NOTE), slot)
            atom.tokens += slot.tokens
            self.late_mark = self.scattered = entry.sequence
        else:
            atom = self.begin(entry, untouched=False) if alone else self.own()
            atom.show(slot)
            atom.closed = True
        self.out.total += slot.tokens
        self.measure(atom)
        atom.note = True
        if alone:
            atom.entries.append(entry)
            atom.late = (*atom.late, (entry.sequence, late_of))
            start = atom.start if atom.first == entry.sequence else None
            self.out.facts[entry.sequence] = EntryFacts(entry.sequence, atom.step, start, late_of)
