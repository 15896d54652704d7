"""Reading a session from the store into a view: the whole of it, or the window that a plan may
need.

Rows read are in proportion to the window: one look-up of the running sum finds where it begins.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter

from msgspec.structs import replace

from contextengine_server.context.carried import FoldState
from contextengine_server.context.eviction import history_of
from contextengine_server.context.fold import NeedsHistory, apply, extend
from contextengine_server.context.layout import top_level
from contextengine_server.context.message import MIN_CAP_CHARS
from contextengine_server.context.scope import Scope
from contextengine_server.context.view import Summary, View
from contextengine_server.context.work import AT_ONCE, Work, batches
from contextengine_server.session.rows import stored_summaries
from contextengine_server.session.session import contents
from contextengine_server.session.state import SessionState, ViewFacts
from contextengine_server.session.window import (
    hold_newest,
    hold_scrap,
    refuse_scattered,
    shown_in,
    single,
)
from contextengine_server.slices import in_slices, let_go
from contextengine_server.store.lineage import parent_of
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import MessageRow, SessionHead, SummaryRow
from contextengine_server.wire.damage import absent, successors
from contextengine_server.wire.entries import stored
from contextengine_server.wire.slots import WireShaper

_SEQUENCE = attrgetter("sequence")

PASSED_OVER = 16
"""Rows that are looked at for one that is shown: orphan results in a row are not shown."""


async def load(
    store: Store,
    head: SessionHead,
    state: SessionState,
    shaper: WireShaper,
    reach: int | None,
    *,
    as_of: int | None = None,
) -> tuple[View, list[Summary]]:
    """The view at the head's revision, and every live summary. `as_of`: that revision, where the
    session may have gone on since; with it all is read.

    `reach`: the window must hold the newest so many tokens of history, and all that no summary
    covers where that is no more; None: everything.

    What may be shown shorter comes on top of `reach`: it may cost next to nothing then, and what
    lies before it may be shown as well.
    """
    large = 0
    while True:
        reached = None if reach is None else reach + large
        view, summaries = await _load(store, head, state, shaper, reached, as_of)
        if reach is None or not view.base:
            return view, summaries
        found = await in_slices(_tokens_of_shorter(view, reach))
        if found <= large:
            return view, summaries
        let_go(*contents(view))
        # Where most of a history may be shown shorter, each step back finds nearly as much again.
        large = 2 * found if large else found


def _tokens_of_shorter(view: View, reach: int) -> Work[int]:
    """The tokens in memory of what may be shown shorter: messages that may be over a cap, results
    that later ones stand for, and what must be shown whatever the budget, where it is much of what
    the window is to hold."""
    steps: set[int] = set()
    tokens = 0

    def count(more: Iterable[int]) -> None:
        nonlocal tokens
        for step in more:
            if step not in steps and view.holds(step):
                steps.add(step)
                tokens += view.atom(step).tokens

    for some in batches(chain(view.large, view.observations.stale_steps())):
        count(some)
        yield
    needed = {*view.must_stay(), view.steps - 1}
    # A window reaches less than twice as far as its budget.
    if 2 * sum(view.atom(step).tokens for step in needed) > reach:
        count(needed)
    return tokens


async def _load(
    store: Store,
    head: SessionHead,
    state: SessionState,
    shaper: WireShaper,
    reach: int | None,
    as_of: int | None = None,
) -> tuple[View, list[Summary]]:
    summaries = await _summaries(store, head, shaper, as_of=as_of)
    view = View(
        scope=head.scope,
        revision=head.revision,
        incarnation=head.incarnation,
        commit_id=head.commit_id,
    )
    place_summaries(view, summaries, state)
    first = None
    if reach is not None and not head.parent_session:
        first = await _window_start(store, head, state.view, reach)
    if first is None:
        await _fold(view, await _all_rows(store, head, as_of), shaper)
        summaries = _at_their_steps(view, summaries, state)
    else:
        rows = await store.messages(head.scope, first.sequence)
        assert first.step is not None
        assert first.start is not None
        view.base, view.total = first.step, first.start
        facts = state.view
        view.fold = FoldState(leading_open=first.step < facts.leading)
        try:
            # A late result that is shown before the window is left out.
            shown = await in_slices(shown_in(view, rows, first.sequence))
            await _fold(view, shown, shaper)
            let_go(rows)
            view.fold = facts
            await _anchor(store, head, state, view, first.sequence, shaper)
            assert reach is not None
            newer = view.summaries[-1].span_end if view.summaries else 0
            in_window = view.total - max(newer, view.window_start)
            await hold_newest(store, view, shaper, reach - in_window, reach)
            await hold_scrap(store, view, shaper, reach)
        except NeedsHistory:
            return await _load(store, head, state, shaper, None)
        if (view.steps, view.total) != (facts.steps, head.message_tokens):
            # What rows say of themselves does not come to what the head says: all of them tell.
            return await _load(store, head, state, shaper, None)
    view.rewind_mark, view.reset_mark = state.view.rewind_mark, state.view.reset_mark
    view.last_sequence, view.message_count = head.last_sequence, head.message_count
    return view, summaries


def place_summaries(view: View, live: list[Summary], state: SessionState) -> None:
    """Brings the live summaries into a view."""
    view.summaries = top_level(live)
    view.stretches = [summary.stretch for summary in live]
    view.covered = [summary.reach for summary in live]
    view.stretches += [(first, last, created, gone) for first, last, created, gone in state.undone]
    commits = sorted({0, *(summary.created for summary in live)})
    view.evictions = history_of(
        (summary.before, summary.created, commits[bisect_left(commits, summary.created) - 1])
        for summary in live
    )


def _at_their_steps(view: View, live: list[Summary], state: SessionState) -> list[Summary]:
    """The live summaries with the running sums of the steps that they cover, which are all in
    memory, and the view with them. What the row of an inherited one says is as of the session that
    stores it: a late result that came to the one that goes on moved nothing there."""
    atoms = view.atoms
    placed = [
        replace(one, span_start=atoms[one.first_step].start, span_end=atoms[one.last_step].end)
        if one.last_step < len(atoms)
        else one
        for one in live
    ]
    place_summaries(view, placed, state)
    return placed


async def lineage_rows(
    store: Store, head: SessionHead, *, as_of: int | None = None
) -> list[tuple[Scope, list[MessageRow]]]:
    """All rows of the view by the session that stores them, in order: those of the session it
    continues, up to that moment, first."""
    inherited: list[tuple[Scope, list[MessageRow]]] = []
    if inherits(head, as_of):
        parent = await parent_of(store, head)
        if parent is not None:
            theirs = await lineage_rows(store, parent, as_of=head.parent_revision)
            last = head.parent_sequence
            inherited = [
                (scope, rows[: bisect_right(rows, last, key=_SEQUENCE)]) for scope, rows in theirs
            ]
    own = await store.messages(head.scope, as_of=as_of)
    if as_of is None or as_of == head.revision:
        lacking = head.message_count - sum(len(rows) for _, rows in inherited) - len(own)
        if lacking > 0:
            own = await _with_gaps(store, head, own, lacking)
    return [*inherited, (head.scope, own)]


async def _with_gaps(
    store: Store, head: SessionHead, own: Sequence[MessageRow], lacking: int
) -> list[MessageRow]:
    """A session's rows with a gap for each message that the head counts and nothing is stored of:
    sequences leave none out."""
    there = {row.sequence: row for row in await store.messages(head.scope, retired=True)}
    first = head.parent_sequence + 1 if head.parent_session else 1
    rows, created = {row.sequence: row for row in own}, 1
    gone = [at for at in range(first, head.last_sequence + 1) if at not in there][-lacking:]
    for sequence in range(first, head.last_sequence + 1 if gone else first):
        if sequence in there:
            created = there[sequence].created_revision
        elif sequence in gone:
            rows[sequence] = absent(sequence, created)
    return [rows[sequence] for sequence in sorted(rows)]


def inherits(head: SessionHead, as_of: int | None = None) -> bool:
    """True where the view begins with the rows of the session that this one continues: until the
    first reset."""
    if not head.parent_session:
        return False
    detached = SessionState.decode(head.state).detached
    return not detached or (as_of is not None and as_of < detached)


async def _all_rows(store: Store, head: SessionHead, as_of: int | None) -> list[MessageRow]:
    first, *more = [rows for _, rows in await lineage_rows(store, head, as_of=as_of)]
    for rows in more:
        first += rows
    return first


async def _summaries(
    store: Store, head: SessionHead, shaper: WireShaper, *, as_of: int | None = None
) -> list[Summary]:
    return stored_summaries(await lineage_summaries(store, head, as_of=as_of), shaper)


async def lineage_summaries(
    store: Store, head: SessionHead, *, as_of: int | None = None
) -> list[SummaryRow]:
    """All live summaries of the view, those of the session it continues first. What became of one
    behind the moment that the view is of is no part of it."""
    own = await store.summaries(head.scope, as_of=as_of)
    return [*await inherited_summaries(store, head, as_of=as_of), *map(_live, own)]


async def inherited_summaries(
    store: Store, head: SessionHead, *, as_of: int | None = None
) -> list[SummaryRow]:
    """Those of them that other sessions store: what was live there when this view began."""
    parent = await parent_of(store, head) if inherits(head, as_of) else None
    if parent is None:
        return []
    rows = await lineage_summaries(store, parent, as_of=head.parent_revision)
    rows += successors(rows, await store.summaries(parent.scope, retired=True))
    return [_live(row) for row in rows if row.last_sequence <= head.parent_sequence]


def _live(row: SummaryRow) -> SummaryRow:
    return replace(row, retired_revision=0) if row.retired_revision else row


async def _fold(view: View, rows: list[MessageRow], shaper: WireShaper) -> None:
    """Folds stored messages, and empties their list: to free many takes its time as well.

    The spans of summaries are as they were stored, all late results counted: the fold, which moves
    spans with every late result, must not move them again.
    """
    summaries, view.summaries = view.summaries, []
    covered, view.covered = view.covered, []
    await in_slices(_folding(view, rows, shaper))
    view.summaries, view.covered = summaries, covered


def _folding(view: View, rows: list[MessageRow], shaper: WireShaper) -> Work[None]:
    rows.reverse()
    while rows:
        some = [stored(rows.pop()) for _ in range(min(AT_ONCE, len(rows)))]
        apply(view, extend(view, some, shaper))
        yield


async def _window_start(
    store: Store, head: SessionHead, facts: ViewFacts, reach: int
) -> MessageRow | None:
    """The row that begins the window, which holds all that the next reply answers; None where the
    window is the whole view, or holds a message that stands in more places than its row tells."""
    position = head.message_tokens - reach
    if position <= 0:
        return None
    row = await store.atom_from(head.scope, position)
    if row is None:
        # The newest atom alone is longer than the window, so the window begins with it. Where it
        # shows nothing, it has no running sum to begin at, and all is read.
        newest = await store.atom_of(head.scope, head.last_sequence)
        row = next((member for member in newest if member.start is not None), None)
        back = 1
        while row is None and not newest and back <= head.message_tokens:
            # The newest sequence is of a message that a rewind took back.
            row = await store.atom_from(head.scope, head.message_tokens - back)
            back *= 2
    elif row.step:
        row = await _large_before(store, head, row) or row
    answered = facts.steps - 1 - facts.waiting.steps
    while row is not None and row.step and answered < row.step:
        row, _ = await _step_before(store, head, row)
    return row if row is not None and row.step and row.sequence > facts.scattered else None


async def _large_before(store: Store, head: SessionHead, begins: MessageRow) -> MessageRow | None:
    """The row that begins the step before this one, where a message of that may be over a cap."""
    first, rows = await _step_before(store, head, begins)
    return first if any(len(row.body) > MIN_CAP_CHARS for row in rows) else None


async def _step_before(
    store: Store, head: SessionHead, begins: MessageRow
) -> tuple[MessageRow | None, list[MessageRow]]:
    """The row that begins the step before this one, and all rows of it; None where it is not found
    near."""
    for sequence in range(begins.sequence - 1, max(0, begins.sequence - PASSED_OVER), -1):
        rows = await store.atom_of(head.scope, sequence)
        first = next((row for row in rows if row.start is not None), None)
        if first is not None:
            return first, rows
    return None, []


async def _anchor(
    store: Store,
    head: SessionHead,
    state: SessionState,
    view: View,
    before: int,
    shaper: WireShaper,
) -> None:
    """Reads the atoms before the window that every assembly needs."""
    facts = state.view
    groups: list[list[MessageRow]] = []
    if facts.leading_last:
        for row in await store.messages(head.scope, 1, min(facts.leading_last, before - 1)):
            # A developer's message may call tools: what these answered stands behind it.
            calls = row.start is not None and stored(row).traits.calls
            groups.append(await store.atom_of(head.scope, row.sequence) if calls else [row])
    groups += await store.pinned_atoms(head.scope, before)
    if facts.user_first and facts.user_first < before:
        groups.append(await store.atom_of(head.scope, facts.user_first))
    for group in groups:
        atom = single(head.scope, group, shaper, facts.leading)
        if atom is not None:
            refuse_scattered(view, atom)
            view.anchors[atom.step] = atom
            if atom.pinned:
                view.pinned = sorted({*view.pinned, atom.step})
