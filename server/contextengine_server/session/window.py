"""Parts of the history that are read by themselves, before the window: what stands between
summaries, and single atoms.

What is read is in proportion to the part: a late result is found by the call that it answers,
wherever it lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as changed

from msgspec.structs import replace

from contextengine_server.context.atom import Atom
from contextengine_server.context.carried import FoldState
from contextengine_server.context.fold import NeedsHistory, seal
from contextengine_server.context.message import Entry
from contextengine_server.context.scope import Scope
from contextengine_server.context.settled import SCRAP
from contextengine_server.context.view import View
from contextengine_server.context.work import Work, at_once, batches
from contextengine_server.slices import in_slices, let_go
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import MessageRow
from contextengine_server.wire.entries import stored
from contextengine_server.wire.slots import WireShaper

LOOKED_AT_ONCE = 1_000
"""Rows of which it is looked at once whether they came late: 0.1 µs each."""


async def anchor_of(store: Store, scope: Scope, sequence: int, shaper: WireShaper) -> Atom | None:
    """The atom that shows a stored message, read by itself."""
    return single(scope, await store.atom_of(scope, sequence), shaper)


def single(
    scope: Scope, rows: list[MessageRow], shaper: WireShaper, leading: int = 0
) -> Atom | None:
    """One atom from its rows, late results included. `leading`: the steps that lead the view."""
    begin = next((row for row in rows if row.start is not None), None)
    if begin is None or begin.step is None or begin.start is None:
        return None
    fold = FoldState(leading_open=begin.step < leading)
    view = View(scope=scope, base=begin.step, total=begin.start, fold=fold)
    in_place = [row for row in rows if row.late_of is None]
    # Late results that are shown as notes stand behind the atom, as steps of their own.
    late = [row for row in rows if row.late_of is not None and row.step == begin.step]
    at_once(_fold_part(view, in_place, late, shaper))
    return view.atoms[0] if view.atoms else None


async def with_oldest(store: Store, view: View, shaper: WireShaper, tokens: int) -> View:
    """The view, holding as well the oldest atoms that no summary covers, so many tokens of them.
    The view given stays as it is.

    What it costs is in proportion to the tokens, wherever the window begins.
    """
    copy = changed(view, anchors=dict(view.anchors), follows=dict(view.follows))
    for start, end in _gaps(view):
        if tokens <= 0:
            break
        tokens -= await _hold(store, copy, start, min(end, start + tokens), shaper)
    return copy


async def hold_newest(
    store: Store, view: View, shaper: WireShaper, tokens: int, between: int = 0
) -> None:
    """Holds in a view the newest atoms before the window that no summary covers: so many tokens of
    what is newer than every summary, and of what stands between summaries as much as has room
    beside newer ones in `between` tokens; requests that were never evicted for what came behind
    them have such room of their own. Raises NeedsHistory."""
    newer = view.summaries[-1].span_end if view.summaries else 0
    requests = between
    following = len(view.summaries)
    for start, end in reversed(_gaps(view)):
        while following and view.summaries[following - 1].span_start >= end:
            following -= 1
            between -= view.summaries[following].tokens
        asked = following < len(view.summaries) and view.summaries[following].asked_before
        most = tokens if start >= newer else requests if asked else between
        if most > 0:
            held = await _hold(store, view, max(start, end - most), end, shaper)
            if start >= newer:
                tokens -= held
            elif asked:
                requests -= held
            else:
                between -= held


async def hold_scrap(store: Store, view: View, shaper: WireShaper, tokens: int) -> None:
    """Holds in a view what stands between the summaries and the newest user's message where that is
    a scrap (`context.lawful.SCRAP`), with so many tokens from there on: it is shown where they fit
    together. Raises NeedsHistory."""
    user, begin = view.user_step, view.raw_from
    if not begin <= user or not view.holds(user):
        return
    start = view.summaries[-1].span_end if view.summaries else 0
    if view.leading > begin:
        start = view.atom(view.leading - 1).end
    pinned = sum(view.atom(step).tokens for step in view.pinned if begin <= step < user)
    if 0 < view.atom(user).start - start - pinned <= SCRAP and start < view.window_start:
        await _hold(store, view, start, min(start + tokens, view.window_start), shaper)


def _gaps(view: View) -> list[tuple[int, int]]:
    """Where what no summary covers lies before the window, besides the leading messages: running
    sums, in order."""
    gaps = []
    position = view.atom(view.leading - 1).end if view.leading else 0
    for summary in (*view.summaries, None):
        end = view.window_start if summary is None else min(summary.span_start, view.window_start)
        if end > position:
            gaps.append((position, end))
        if summary is not None:
            position = max(position, summary.span_end)
    return gaps


async def _hold(store: Store, view: View, start: int, end: int, shaper: WireShaper) -> int:
    """Holds the atoms whose running sum before them is at least `start` and below `end`; their
    tokens."""
    first = await store.atom_from(view.scope, start)
    behind = await store.atom_from(view.scope, end)
    if first is None or first.step is None or first.start is None:
        return 0
    if behind is not None and behind.sequence <= first.sequence:
        return 0
    rows = await store.messages(
        view.scope, first.sequence, behind.sequence - 1 if behind is not None else None
    )
    if not rows:
        return 0
    late: list[MessageRow] = []
    if view.late_mark and behind is not None and behind.step is not None:
        found = await store.late_results(view.scope, first.sequence, behind.sequence - 1)
        late = [
            r
            for r in found
            if r.sequence > behind.sequence and r.step is not None and r.step < behind.step
        ]
    part = View(
        scope=view.scope,
        base=first.step,
        total=first.start,
        fold=FoldState(leading_open=False),
        stretches=view.stretches,
    )
    shown = await in_slices(shown_in(part, rows, first.sequence))
    await in_slices(_fold_part(part, shown, late, shaper))
    let_go(rows)
    for atom in part.atoms:
        refuse_scattered(view, atom)
        view.anchors[atom.step] = atom
    view.large = sorted({*view.large, *part.large})
    view.answers = sorted({*view.answers, *part.answers})
    view.older = (*view.older, *part.replies.thoughts)
    if behind is not None and behind.step is not None:
        view.follows[behind.step] = behind.sequence
    return sum(atom.tokens for atom in part.atoms)


def shown_in(part: View, rows: Sequence[MessageRow], first: int) -> Work[list[MessageRow]]:
    """Of the rows from a sequence on those that the part shows: not the late results that are shown
    before it. One that it shows as a note finds its call by `late_of`."""
    shown: list[MessageRow] = []
    abandoned: dict[str, list[int]] = {}
    for some in batches(rows, LOOKED_AT_ONCE):
        for row in some:
            if row.late_of is not None and row.late_of < first:
                if row.step is None or row.step < part.base:
                    continue
                for _, call_id in stored(row).traits.results:
                    abandoned.setdefault(call_id, []).append(row.late_of)
            shown.append(row)
        yield
    part.fold = replace(part.fold, abandoned=abandoned)
    return shown


def _fold_part(
    part: View, rows: Sequence[MessageRow], late: Sequence[MessageRow], shaper: WireShaper
) -> Work[None]:
    """Folds a part that ended long ago, and the results for its calls that came after it."""
    there = [(stored(row), row.late_of) for row in late if row.late_of is not None]
    entries: list[Entry] = []
    for some in batches(rows):
        entries += map(stored, some)
        yield
    yield from seal(part, entries, there, shaper)


def refuse_scattered(view: View, atom: Atom) -> None:
    """Refuses an atom that may show more than its own rows say. Raises NeedsHistory.

    A message may bring late results for calls of several atoms, but its row names only one of these
    atoms. So an atom with calls or results that is no newer than such a message may also show one
    of its results, and only a fold of the whole history tells.
    """
    if atom.first <= view.fold.scattered and (
        atom.calls or any(entry.traits.results for entry in atom.entries)
    ):
        raise NeedsHistory(atom.first)
