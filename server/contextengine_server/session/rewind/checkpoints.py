"""Moments of a session from which on its view can be folded again, so that a rewind reads its tail
only: what it takes back, and up to twice as much before that.

They are made by the fold every some hundred messages (`context.folder`), are kept in the session's
state, and thin out with their age. One is true as long as nothing that came behind it belongs
before it: a late result that takes its place behind its call takes away all that stand behind the
call.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import msgspec
from msgspec import structs

from contextengine_server.context.extension import CHECKPOINT_EVERY, Checkpoint, Extension
from contextengine_server.context.fold import NeedsHistory, apply, extend
from contextengine_server.context.message import Entry
from contextengine_server.context.view import View
from contextengine_server.context.work import Work, batches
from contextengine_server.session.session import Session
from contextengine_server.session.state import SessionState, StoredCheckpoint, ViewFacts
from contextengine_server.slices import in_slices
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Facts, MessageRow
from contextengine_server.wire.entries import stored
from contextengine_server.wire.slots import WireShaper

from .refold import Refolded, compared
from .rewind import Rewind, leaving

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ViewFacts).decode


def with_checkpoints(
    state: SessionState, facts: ViewFacts, view: View, change: Extension, entries: Sequence[Entry]
) -> tuple[StoredCheckpoint, ...]:
    """The checkpoints of a session with those that an extension of its view made. `facts`: of the
    view with the extension in it."""
    known = state.checkpoints
    if change.shifts:
        oldest = min(first for first, _ in change.shifts)
        known = tuple(one for one in known if one.sequence <= oldest)
    if not change.checked:
        return known
    new = [_stored(one, state.view, facts, view, change, entries) for one in change.checkpoints]
    return _thinned([*known, *new], change.checked)


def _stored(
    point: Checkpoint,
    known: ViewFacts,
    facts: ViewFacts,
    view: View,
    change: Extension,
    entries: Sequence[Entry],
) -> StoredCheckpoint:
    before = [entry for entry in entries if entry.sequence < point.sequence]
    ids = (entry.id for entry in reversed(before) if entry.id)
    step, user_first = point.fold.user_step, known.user_first
    added = {atom.step: atom for atom in change.added}
    if step in added:
        user_first = added[step].first
    elif step >= 0 and view.holds(step):
        user_first = view.atom(step).first
    there = ViewFacts(
        **structs.asdict(point.fold),
        steps=point.steps,
        first_sequence=facts.first_sequence,
        leading_last=facts.leading_last,
        user_first=user_first if step >= 0 else 0,
        last_id=next(ids, known.last_id),
    )
    count = view.message_count + len(before)
    return StoredCheckpoint(point.sequence, point.total, count, msgspec.Raw(_encode(there)))


def _thinned(points: Sequence[StoredCheckpoint], newest: int) -> tuple[StoredCheckpoint, ...]:
    """Of every age one at least that is no more than three times as old, so that there are few
    however long the session: the more often its number can be halved, the longer one is kept. Ages
    are told from the `newest` sequence of one, though it be gone: so the same are kept however the
    messages came."""
    newest //= CHECKPOINT_EVERY
    kept: dict[int, StoredCheckpoint] = {}
    for point in points:
        number = point.sequence // CHECKPOINT_EVERY
        if newest - number < 2 * (number & -number):
            kept[number] = point
    return tuple(kept.values())


async def rewound_from_checkpoint(store: Store, session: Session, after: int) -> Rewind | None:
    """What a rewind to behind a sequence leaves, worked out from the newest checkpoint before it.
    None where there is none from which it can be."""
    head, state = session.require(), session.state
    found = [one for one in state.checkpoints if one.sequence <= after]
    # The row of a message that stands in several places tells one of them.
    if not found or found[-1].sequence <= state.view.scattered:
        return None
    point = found[-1]
    rows = await store.messages(session.scope, point.sequence)
    if point.count + len(rows) != head.message_count:
        return None  # some are missing: all of them tell which
    before = _decode(point.facts)
    view = View(scope=session.scope, incarnation=head.incarnation)
    view.base, view.total, view.message_count = before.steps, point.total, point.count
    view.fold, view.reset_mark = before, session.view.reset_mark
    view.stretches = list(session.view.stretches)
    try:
        left = await in_slices(_refolded(view, rows, after, session.encoding.shaper))
    except NeedsHistory:
        return None
    return None if left is None else leaving(session, after, left, before)


def _refolded(
    view: View, rows: Sequence[MessageRow], after: int, shaper: WireShaper
) -> Work[Refolded | None]:
    """Folds rows onto a view, but for those behind a sequence. None where one is damaged: it does
    not say what it called and answered."""
    kept = [row for row in rows if row.sequence <= after]
    for some in batches(kept):
        entries = [stored(row) for row in some]
        if any(entry.damaged for entry in entries):
            return None
        apply(view, extend(view, entries, shaper))
        yield
    lost = {row.step for row in rows if row.sequence > after and row.step is not None}
    lost = {step for step in lost if step < view.steps}
    place = attrgetter("sequence", "step", "start", "late_of")
    known = {row.sequence: Facts(*place(row)) for row in kept}
    return (yield from compared(view, known, lost))
