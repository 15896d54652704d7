"""The end of a turn: its messages, its usage, exactly once where a key is given, and the question
whether a compaction is due (docs/semantics.md#the-end-of-a-turn)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import msgspec
import structlog

from contextengine_server.commands.awaited_hosts import AwaitedHosts
from contextengine_server.compaction.compactor import Compactor
from contextengine_server.compaction.jobs import PASSES
from contextengine_server.compaction.model_failure import blocked
from contextengine_server.compaction.queue import CompactionQueue
from contextengine_server.compaction.request import CompactionRequest, describe
from contextengine_server.context.budget import ModelTokens, ReferenceTokens
from contextengine_server.engines.contract import Engine
from contextengine_server.engines.failure import EngineBroken
from contextengine_server.engines.host_capabilities import LENDS_IN_MAINTAIN
from contextengine_server.session.address import Addresses, Ref
from contextengine_server.session.append import Appender
from contextengine_server.session.assembly.budget import (
    BudgetDefaults,
    BudgetSpec,
    available_of,
    counted_spec,
)
from contextengine_server.session.assembly.pressure import uncounted_in, with_uncounted
from contextengine_server.session.model import Report
from contextengine_server.session.receipt import Request, Written
from contextengine_server.session.selection import Selection
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions, count_messages
from contextengine_server.session.state import SessionState
from contextengine_server.session.usage.bills import Billing
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.rows import SessionHead
from contextengine_server.telemetry.tracing import CURRENT, under
from contextengine_server.wire.message import Incoming

log = structlog.get_logger("contextengine.after_turn")


class Turn(msgspec.Struct, frozen=True):
    """What a turn added."""

    messages: Sequence[Incoming]
    first_index: int = 0
    """Where in the request's list they begin."""
    key: str = ""
    """Makes the call exactly-once whatever it carries; empty: not asked for."""
    request: Request | None = None
    report: Report | None = None
    budget: BudgetSpec | None = None
    """That of the next call; None: the request says nothing of it."""
    measured: ModelTokens | None = None
    """The whole prompt as the harness measured it."""
    cause: str = ""


class TurnDone(msgspec.Struct, frozen=True):
    """What became of the turn."""

    written: Written
    queued: bool
    job_wait_ms: int = 0
    """How long what was queued waits for the session's host to come by with its model; 0: it does
    not."""


class AfterTurn(msgspec.Struct, frozen=True):
    """Ends a turn."""

    addresses: Addresses
    sessions: Sessions
    selection: Selection
    appender: Appender
    billing: Billing
    budgets: BudgetDefaults
    queue: CompactionQueue
    compactor: Compactor
    visits: AwaitedHosts | None = None
    """Which hosts lend their models when they come by; None: none does."""

    async def run(self, tenant: str, ref: Ref, turn: Turn) -> TurnDone:
        """Stores the turn and queues a compaction where one is due; with `deferCompaction: false`
        it runs here."""
        address = await self.addresses.find(tenant, ref)
        scope = address.scope
        encoding = await self.sessions.encoding_of(scope)
        await count_messages(encoding, turn.messages)
        budget = await counted_spec(turn.budget or BudgetSpec(), encoding)
        engine = (await self.selection.engine_for(scope, address.key)).engine
        report = turn.report

        def note(head: SessionHead, state: SessionState) -> tuple[SessionHead, SessionState]:
            if report is None:
                return head, state
            return head, self.billing.noting(head, state, report, charge)

        request = turn.request
        if turn.key:
            # The key alone decides: whatever comes under it a second time changes nothing.
            request = Request(f"turn:{turn.key}", b"")
        async with self.sessions.open(scope, lock=True) as session:
            # First, since a budget that cannot be is refused before anything is stored.
            available = available_of(session, self.budgets, budget)
            if turn.budget is None and not session.state.model.served_window:
                # What the next call will have as well, by all that is known. Where that is less, it
                # sees to itself.
                available = max(available, session.assembled_for)
            charge = self.billing.charge(session.head, report)
            written = await self.appender.append(
                session,
                address,
                turn.messages,
                first_index=turn.first_index,
                refuse_conflicts=False,
                request=request,
                # A key is spent even by a turn that brings nothing new.
                edit=note if report is not None or turn.key else None,
                charge=charge,
            )
            if written.repeated or session.head is None:
                return TurnDone(written, queued=False)
            self.billing.meter(report, charge)
            more = uncounted_in(turn.measured, session, engine, budget, available)
            due = self._due(engine, session, available, more)
            ahead = not due and self.compactor.memory.ahead(session, available)
        if ahead:
            with suppress(StoreUnavailable):  # the turn is stored: the next one records it
                await self.queue.add_flush(scope, available, turn.cause)
        if not due:
            return TurnDone(written, queued=False)
        if engine.defers:
            queued = False
            wait_ms = self._awaited(session)
            with suppress(StoreUnavailable):
                queued = await self.queue.add(scope, available, turn.cause, uncounted=more)
            return TurnDone(written, queued, wait_ms if queued else 0)
        sessions = self.sessions
        async with sessions.open(scope) as session, sessions.compacting(session):
            wanted = CompactionRequest(available, to_threshold=True, uncounted=more, passes=PASSES)
            with CURRENT.get().span("compact") as span, under(span):
                describe(span, await self.compactor.compact(address, engine, wanted))
            written.revision = session.revision
        return TurnDone(written, queued=False)

    def _awaited(self, session: Session) -> int:
        """How long the session's host is waited for."""
        if self.visits is None or LENDS_IN_MAINTAIN not in session.state.capabilities:
            return 0
        self.visits.seen(session.scope)
        return self.visits.wait_ms

    def _due(
        self, engine: Engine, session: Session, available: ReferenceTokens, more: ReferenceTokens
    ) -> bool:
        """Whether a compaction is due. What the turn brought is stored: that the engine fails is
        said where it is asked for something."""
        try:
            measured = with_uncounted(session.view, more)
            due = not session.state.held and engine.due(session.view, available, measured)
            due = due and not blocked(engine, session.state, self.sessions.clock_ms())
            self.selection.failures.succeeded(session.scope.tenant, engine.id, "after turn")
            return due
        except EngineBroken as error:
            self.selection.failed(session.scope, engine.id, "after turn", error)
            return False
