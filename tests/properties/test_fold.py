"""The fold: however messages arrive, the view is the one that the whole list must have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from contextengine_server.context.carried import FoldState
from contextengine_server.context.fold import EntryFacts, NeedsHistory, apply, extend, extended
from contextengine_server.context.laws.determinism import fingerprint
from contextengine_server.context.message import Entry
from contextengine_server.context.view import View
from contextengine_server.testing.engine.random_sessions import RandomSession, sessions
from contextengine_server.testing.engine.views import (
    SHAPER,
    FoldFacts,
    all_slots,
    empty,
    entries_of,
    folded,
    items,
)
from contextengine_server.testing.oracle.assembly import shows
from contextengine_server.testing.oracle.pairs import CoveredRange, listing


def state(view: View) -> tuple[object, ...]:
    """All that a view says and that does not depend on how it came to be."""
    return (
        [
            (a.step, a.start, a.first, a.tokens, a.user, a.pinned, a.leading, a.pending, a.growing,
            a.note,
             [(s.sequence, s.form, s.tokens, s.hash, s.frame, s.call_id,
             s.synthetic) for s in a.slots],
             [e.sequence for e in a.entries], [(e.sequence, why) for e, why in a.dropped],
             [(c.id, c.index, c.answered) for c in a.calls])
            for a in view.atoms
        ],
        view.base, view.total, view.last_sequence, view.message_count, view.leading,
        view.fold.leading_open, view.user_step,
        view.user_peak, view.pinned, {k: v for k, v in view.abandoned.items() if v}, view.late_mark,
    )  # fmt: skip


@st.composite
def covered(draw: st.DrawFn) -> tuple[RandomSession, list[CoveredRange]]:
    """A session, parts of which were summarized while it went on."""
    session = draw(sessions())
    stretches, begin = [], 1
    for _ in range(draw(st.integers(0, 3))):
        first = begin + draw(st.integers(0, 6))
        last = first + draw(st.integers(0, 12))
        stretches.append(
            CoveredRange(first, last, created=2 * (last + draw(st.integers(0, 6))) + 1)
        )
        begin = last + 1
    return session, stretches


@given(covered())
def test_the_view_is_what_the_whole_list_must_look_like(
    case: tuple[RandomSession, list[CoveredRange]],
) -> None:
    session, stretches = case
    view = folded(entries_of(session.rows), stretches=stretches)
    expected = listing(session.rows, stretches)
    by_sequence = {row.sequence: row for row in session.rows}

    assert [atom.first for atom in view.atoms] == [group.first for group in expected.groups]
    for atom, group in zip(view.atoms, expected.groups, strict=True):
        shown = items(atom.slots)
        assert len(shown) == len(group.shown), (group, shown)
        for item, wanted in zip(shown, group.shown, strict=True):
            assert shows(wanted, item, by_sequence), (wanted, item)
        assert (atom.user, atom.pinned, atom.leading, atom.pending) == (
            group.user, group.pinned, group.leading, group.pending,
        )  # fmt: skip
        assert sorted(entry.sequence for entry in atom.entries) == sorted(group.members)
    dropped = {entry.sequence for atom in view.atoms for entry, _ in atom.dropped}
    assert dropped == expected.dropped
    assert view.leading == sum(group.leading for group in expected.groups)
    assert view.pinned == [step for step, group in enumerate(expected.groups) if group.pinned]
    assert view.user_step == (expected.newest_user[0] if expected.newest_user else -1)


@given(covered(), st.integers(2, 7), st.lists(st.integers(1, 9), max_size=40))
def test_messages_one_by_one_or_together_make_the_same_view(
    case: tuple[RandomSession, list[CoveredRange]], batch: int, batches: list[int]
) -> None:
    session, stretches = case
    entries = entries_of(session.rows)
    whole = state(folded(entries, stretches=stretches))
    assert state(folded(entries, batch=1, stretches=stretches)) == whole
    assert state(folded(entries, batch=batch, stretches=stretches)) == whole
    view, at = empty(stretches), 0
    for size in [*batches, len(entries)]:
        apply(view, extend(view, entries[at : at + size], SHAPER))
        at += size
    assert state(view) == whole


@given(sessions())
def test_running_sums_are_the_sums_over_slots(session: RandomSession) -> None:
    view, entries = empty(), entries_of(session.rows)
    for entry in entries:
        apply(view, extend(view, [entry], SHAPER))
        running = 0
        for step, atom in enumerate(view.atoms):
            assert (atom.step, atom.start) == (step, running)
            assert atom.tokens == sum(slot.tokens for slot in atom.slots)
            running += atom.tokens
            assert atom.end == running
        assert view.total == running
        assert view.view_tokens() == running
        for first in range(0, view.steps, 3):
            for last in range(first, view.steps, 2):
                assert view.span(first, last) == sum(a.tokens for a in view.atoms[first : last + 1])
    assert view.message_count == len(entries)


@given(sessions(), st.integers(0, 40))
def test_what_would_come_is_worked_out_beside_the_view(session: RandomSession, at: int) -> None:
    entries = entries_of(session.rows)
    view = folded(entries[:at])
    before = state(view)
    change = extend(view, entries[at:], SHAPER)
    assert state(view) == before
    ahead = extended(view, change)
    assert state(view) == before
    whole = state(folded(entries))
    assert state(ahead) == whole
    apply(view, change)
    assert state(view) == whole


@given(sessions())
def test_the_same_session_is_shown_by_the_same_bytes(session: RandomSession) -> None:
    first, second = (folded(entries_of(session.rows)) for _ in range(2))
    assert fingerprint(all_slots(first)) == fingerprint(all_slots(second))


def stored(
    session: RandomSession, stretches: Sequence[CoveredRange] = ()
) -> tuple[View, FoldFacts]:
    """The view, message by message, and what the store keeps of it."""
    view, facts = empty(stretches), FoldFacts()
    for entry in entries_of(session.rows):
        change = extend(view, [entry], SHAPER)
        facts.take(change)
        apply(view, change)
    return view, facts


@given(covered())
def test_stored_facts_say_where_each_message_is_shown(
    case: tuple[RandomSession, list[CoveredRange]],
) -> None:
    session, stretches = case
    view, facts = stored(session, stretches)
    place = {entry.sequence: atom for atom in view.atoms for entry in atom.entries}
    dropped = {entry.sequence for atom in view.atoms for entry, _ in atom.dropped}
    for row in session.rows:
        known = facts[row.sequence]
        if row.sequence in dropped:
            assert known.step is None or view.atoms[known.step].slots == []
        else:
            assert known.step is not None
            assert row.sequence in {entry.sequence for entry in view.atoms[known.step].entries}
        begins = next((atom for atom in view.atoms if atom.first == row.sequence), None)
        assert known.start == (None if begins is None else begins.start)
        if known.late_of is not None:
            assert known.step == place[row.sequence].step or len(row.message.parts) > 1
            assert view.find(known.late_of) is not None


def told_by_its_rows(session: RandomSession, stretches: Sequence[CoveredRange]) -> bool:
    """False where there are notes, and a message of several parts has a late one among them: its
    row cannot say which call that answers, so a window that begins behind the call may take it for
    another's."""
    parts = {row.sequence: len(row.message.parts) for row in session.rows}
    groups = listing(session.rows, stretches).groups
    places = Counter(s.sequence for group in groups for s in group.shown if s.kind != "no result")
    notes = {s.sequence for group in groups for s in group.shown if s.kind == "note"}
    return not notes or all(
        parts[sequence] == 1 for sequence in {*notes, *(s for s, n in places.items() if n > 1)}
    )


def window(view: View, facts: dict[int, EntryFacts], entries: list[Entry], base: int) -> View:
    """The view from a step on, read cold: from the rows that begin there, and facts of what is
    before.

    Late results that are shown before the window are left out; those that it shows as notes find
    their calls by `late_of`. Raises NeedsHistory where that is not enough.
    """
    first = view.atoms[base].first
    cold = View(
        view.scope, base=base, total=view.atoms[base].start, stretches=view.stretches,
        fold=FoldState(
            leading=view.leading, leading_open=base < view.leading, user_step=view.user_step,
            user_peak=view.user_peak, late_mark=view.late_mark,
        ),
        pinned=[step for step in view.pinned if step < base],
    )  # fmt: skip
    rows = []
    for entry in entries:
        known = facts[entry.sequence]
        if entry.sequence < first or (
            known.late_of is not None and known.late_of < first and (known.step or 0) < base
        ):
            continue
        if known.late_of is not None and known.late_of < first:
            for _, call_id in entry.traits.results:
                cold.abandoned.setdefault(call_id, []).append(known.late_of)
        rows.append(entry)
    apply(cold, extend(cold, rows, SHAPER))
    carried = view.fold
    cold.fold = replace(
        cold.fold, leading=carried.leading, leading_open=carried.leading_open,
        abandoned=carried.abandoned,
    )  # fmt: skip
    cold.message_count = view.message_count
    cold.last_sequence = view.last_sequence
    return cold


@given(covered())
def test_a_window_shows_what_the_whole_view_shows_from_there_on(
    case: tuple[RandomSession, list[CoveredRange]],
) -> None:
    session, stretches = case
    assume(told_by_its_rows(session, stretches))
    view, facts = stored(session, stretches)
    entries = entries_of(session.rows)
    for base in range(view.steps):
        try:
            cold = window(view, facts, entries, base)
        except NeedsHistory:
            continue
        assert [(a.step, a.start, a.first, a.tokens) for a in cold.atoms] == [
            (a.step, a.start, a.first, a.tokens) for a in view.atoms[base:]
        ]
        assert fingerprint(all_slots(cold)) == fingerprint(
            s for a in view.atoms[base:] for s in a.slots
        )
        assert [a.pending for a in cold.atoms] == [a.pending for a in view.atoms[base:]]
        assert (cold.total, cold.user_step, cold.user_peak, cold.late_mark, cold.pinned,
        cold.last_sequence) == (
            view.total, view.user_step, view.user_peak, view.late_mark, view.pinned,
            view.last_sequence,
        )  # fmt: skip


@given(covered(), sessions(max_events=12), st.integers(1, 20))
def test_a_window_goes_on_as_the_whole_view_does_or_asks_for_history(
    case: tuple[RandomSession, list[CoveredRange]], more: RandomSession, back: int
) -> None:
    session, stretches = case
    assume(told_by_its_rows(session, stretches))
    view, facts = stored(session, stretches)
    entries = entries_of(session.rows)
    if not view.steps:
        return
    base = max(0, view.steps - back)
    try:
        cold = window(view, facts, entries, base)
    except NeedsHistory:
        return
    for number, row in enumerate(more.rows):
        moved = type(row)(10_000 + number, row.message, 20_000 + number)
        needed = 0
        try:
            change = extend(cold, entries_of([moved]), SHAPER)
        except NeedsHistory as missing:
            needed = missing.sequence
        if needed:
            assert needed < view.atoms[base].first
            return
        apply(cold, change)
        apply(view, extend(view, entries_of([moved]), SHAPER))
        assert fingerprint(all_slots(cold)) == fingerprint(
            s for a in view.atoms[base:] for s in a.slots
        )
        assert (cold.steps, cold.total, cold.user_step, cold.late_mark) == (
            view.steps, view.total, view.user_step, view.late_mark,
        )  # fmt: skip
