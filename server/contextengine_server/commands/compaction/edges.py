"""Where a compaction's range begins and ends, as hosts name messages: by sequence and by id."""

from __future__ import annotations

from contextengine_server.context.view import View
from contextengine_server.session.load import PASSED_OVER
from contextengine_server.session.session import Session
from contextengine_server.store.protocols import Store


async def first_kept(session: Session, store: Store) -> tuple[int, str]:
    """The first message behind the summaries, or else behind what leads the session: its sequence,
    0 where nothing follows, and its host id, empty where it has none."""
    view = session.view
    if view.summaries:
        behind = view.summaries[-1].span_end
    elif view.steps <= view.leading:
        return 0, ""
    elif view.holds(view.leading):
        first = view.atom(view.leading).first
        return first, id_at(view, first)
    else:
        behind = view.atom(view.leading - 1).end if view.leading else 0
    row = await store.atom_from(session.scope, behind)
    if row is None:
        return 0, ""
    # Steps that show nothing begin where the next one does.
    rows = await store.messages(session.scope, row.sequence, row.sequence + PASSED_OVER)
    kept = next((one for one in rows if (one.step or 0) >= view.leading), row)
    return kept.sequence, kept.host_id


def id_at(view: View, sequence: int) -> str:
    """The host id of a message in the window; empty: it has none."""
    return next((entry.id for entry in view.entries() if entry.sequence == sequence), "")
