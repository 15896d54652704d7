"""What is committed with summaries besides their rows."""

from __future__ import annotations

from msgspec import structs
from msgspec.structs import replace

from contextengine_server.engines.contract import event_name
from contextengine_server.session.rehydration.decision import rehydrated
from contextengine_server.session.rows import summary_of
from contextengine_server.session.session import Session
from contextengine_server.session.state import SessionState
from contextengine_server.store.rows import SessionHead, SummaryRow
from contextengine_server.telemetry.events import Events
from contextengine_server.telemetry.meters import Meters


def compacted_head(
    head: SessionHead, session: Session, rows: list[SummaryRow], state: SessionState, force: bool
) -> tuple[SessionHead, SessionState]:
    """The head and the state with which these summaries are committed. `force`: from then on
    compactions are made again, although one was undone."""
    # What usage taught comes into force with a compaction's commit, so that nothing changes between
    # two of them.
    state = structs.replace(
        state,
        compactions=state.compactions + len(rows),
        held=state.held and not force,
        model=state.model.taught(),
        remembered_ms=head.updated_ms,
    )
    state = rehydrated(session, rows, state)
    count = len(session.live_summaries) + len(rows)
    generation = head.generation + len(rows)
    return replace(head, generation=generation, summary_count=count), state


def place(session: Session, rows: list[SummaryRow]) -> None:
    """Memory follows the commit of these summaries."""
    for row in rows:
        summary = summary_of(row, session.encoding.shaper)
        session.live_summaries.append(summary)
        session.view.place(summary)
    session.prefixes.clear()


def announce(
    events: Events, meters: Meters, session: Session, engine_id: str, row: SummaryRow
) -> None:
    """Counts a committed summary and says that it is there."""
    meters.compacted["committed"].value += 1
    events.emit(
        event_name(engine_id, "compacted"),
        *session.scope,
        revision=row.created_revision,
        counts={
            "messages": row.message_count,
            "tokens_before": row.source_tokens,
            "tokens_after": row.tokens,
            "depth": row.depth,
            "leaf_summaries_created": int(row.depth == 0),
            "condensed_summaries_created": int(row.depth > 0),
        },
        attributes={"summary": row.id, "summarizer": row.summarizer},
    )
