"""The end of a turn (contract §2, AfterTurn): its messages, its usage, exactly once where a key is
given, and the question whether a compaction is due."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from contextengine_server.compaction.compactor import Wanted, compact, compacted
from contextengine_server.compaction.jobs import PASSES, available_of, queue_compaction
from contextengine_server.session.append import Request, Written, append
from contextengine_server.session.budget import BudgetSpec
from contextengine_server.session.core import Address, SessionCore
from contextengine_server.session.model import Report, meter_usage, note_usage
from contextengine_server.session.state import SessionState
from contextengine_server.store.rows import SessionHead
from contextengine_server.telemetry.tracing import CURRENT, under
from contextengine_server.wire.reading import Incoming

log = structlog.get_logger("contextengine.turning")


@dataclass(slots=True)
class Turn:
    """What a turn added."""

    messages: Sequence[Incoming]
    first_index: int = 0
    """Where in the request's list they begin."""
    key: str = ""
    """Makes the call exactly-once whatever it carries; empty: not asked for."""
    request: Request | None = None
    report: Report | None = None
    budget: BudgetSpec = field(default_factory=BudgetSpec)
    measured: int | None = None
    """The next prompt's tokens as the harness measured them, in the model's tokens."""
    cause: str = ""


@dataclass(slots=True, frozen=True)
class TurnDone:
    """What became of the turn."""

    written: Written
    queued: bool


async def after_turn(core: SessionCore, address: Address, turn: Turn) -> TurnDone:
    """Stores the turn and queues a compaction where one is due; with `deferCompaction: false` it
    runs here."""
    await core.count(turn.messages)
    selected = await core.select(address.scope)
    engine = selected.engine
    report = turn.report

    def note(head: SessionHead, state: SessionState) -> SessionHead:
        if report is not None:
            note_usage(state, report)
        return head

    request = turn.request
    if turn.key:
        # The key alone decides: whatever comes under it a second time changes nothing.
        request = Request(f"turn:{turn.key}", b"")
    async with core.session(address.scope, lock=True) as session:
        # First, since a budget that cannot be is refused before anything is stored.
        available = available_of(core, session, turn.budget)
        written = await append(
            core,
            session,
            address,
            turn.messages,
            first_index=turn.first_index,
            refuse_conflicts=False,
            request=request,
            # A key is spent even by a turn that brings nothing new.
            edit=note if report is not None or turn.key else None,
        )
        if written.repeated or session.head is None:
            return TurnDone(written, queued=False)
        if report is not None:
            meter_usage(core, report)
        measured = (
            None if turn.measured is None else round(turn.measured / session.state.model.factor)
        )
        try:
            due = not session.state.held and engine.due(session.view, available, measured)
        except Exception as error:
            # What the turn brought is stored: that the engine fails is said where it is asked for
            # something.
            log.exception("engine failed", engine=engine.id, operation="after turn")
            core.engine_failed(address.scope, engine.id, "after turn", type(error).__name__)
            due = False
    if not due:
        return TurnDone(written, queued=False)
    if engine.defers:
        queued = await queue_compaction(
            core, address.scope, available, turn.cause, measured=measured
        )
        return TurnDone(written, queued)
    async with core.session(address.scope) as session, session.compaction:
        wanted = Wanted(available, to_threshold=True, measured=measured, passes=PASSES)
        with CURRENT.get().span("compact") as span, under(span):
            compacted(span, await compact(core, address, engine, wanted))
        written.revision = session.revision
    return TurnDone(written, queued=False)
