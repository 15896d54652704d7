"""ShouldCompact: whether a compaction is due, and why."""

from __future__ import annotations

from functools import partial

import msgspec

from contextengine_server.compaction.compaction_pass import Pass
from contextengine_server.compaction.compactor import Compactor
from contextengine_server.compaction.model_failure import blocked, goes_by_attempts
from contextengine_server.compaction.request import HELD, CompactionRequest, answered
from contextengine_server.context.budget import ModelTokens, ReferenceTokens, cell, in_model
from contextengine_server.context.view import View
from contextengine_server.engines.contract import Engine
from contextengine_server.session.address import Addresses, Ref
from contextengine_server.session.assembly.budget import (
    BudgetDefaults,
    BudgetSpec,
    available_of,
    counted_spec,
)
from contextengine_server.session.assembly.pressure import uncounted_in, with_uncounted
from contextengine_server.session.selection import Selection
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions
from contextengine_server.session.state import SessionState

from .live_list import LiveList, LiveLists

OVER, CROWDED = "over threshold", "something has no room"
BELOW, NOTHING = "below threshold", "nothing to compact"
SHOWN_FITS = "what is shown has room"
"""An engine that shows less than there is (a window of turns) judges by that."""
AWAITING = "awaiting usage"
DEFERRED_TO_USAGE = "deferred to real usage"


class ShouldCompactCall(msgspec.Struct, frozen=True):
    """What is asked."""

    budget: BudgetSpec = BudgetSpec()
    measured: ModelTokens | None = None
    """The whole prompt as the harness measured it."""
    preflight: bool = False
    """What is in memory is enough to judge by."""
    live: LiveList | None = None
    """The harness's own list; None: the stored view."""


class Verdict(msgspec.Struct, frozen=True):
    """Whether a compaction is due. Tokens are the model's."""

    due: bool
    reason: str
    tokens: ModelTokens
    threshold: ModelTokens
    has_content: bool
    awaiting: bool


class ShouldCompact(msgspec.Struct, frozen=True):
    """Judges sessions, or the lists of harnesses. Nothing is changed but that a list may be
    stored."""

    addresses: Addresses
    sessions: Sessions
    selection: Selection
    budgets: BudgetDefaults
    compactor: Compactor
    lists: LiveLists

    async def run(self, tenant: str, ref: Ref, call: ShouldCompactCall) -> Verdict:
        """The verdict. Raises SessionNotFound where nothing is stored and no list was given,
        EngineFailed and what is wrong with the budget."""
        address = await self.addresses.find(tenant, ref)
        scope, live = address.scope, call.live
        if live is not None:
            await self.lists.take(address, live)
        spec = await counted_spec(call.budget, await self.sessions.encoding_of(scope))
        engine = (await self.selection.engine_for(scope, address.key)).engine
        async with self.sessions.open(scope) as session:
            if live is None:
                session.require()
            available = available_of(session, self.budgets, spec)
        with self.compactor.asking(scope, engine):
            reach = engine.reach(cell(available))
        async with self.sessions.open(scope, reach) as session:
            if live is None:
                session.require()
            view, factor = session.view, session.state.model.factor
            if live is not None and not live.store_new:
                view = await self.lists.view(session, engine, live)
            more = uncounted_in(call.measured, session, engine, spec, available, view)
            with self.compactor.asking(scope, engine):
                judging = partial(_judged, engine, view, available, more)
                tokens, limit, due = await answered(engine, view.steps, judging, session.lock)
            wanted = CompactionRequest(available, force=True, uncounted=more)
            content = await self._has_content(session, view, engine, wanted, call, due=due)
            # An engine that leaves compaction to its host, which asks here, is never due itself.
            due = due or (not engine.owns_compaction and tokens > limit and content)
            awaiting = awaits_usage(session.state)
            # What was counted here is not asked again until the provider has said what the last
            # compaction made of it; but what has no room does not wait.
            waits = awaiting and call.measured is None and tokens <= available
            reason = _reason(due=due, over=tokens >= limit, content=content)
            stopped = blocked(engine, session.state, self.sessions.clock_ms())
            if session.state.held:
                due, reason = False, HELD
            elif due and stopped:
                due, reason = False, stopped
            elif due and call.preflight and defers(engine, session, ReferenceTokens(limit)):
                due, reason = False, DEFERRED_TO_USAGE
            elif due and waits:
                due, reason = False, AWAITING
            return Verdict(
                due,
                reason,
                in_model(ReferenceTokens(tokens), factor),
                in_model(ReferenceTokens(limit), factor),
                content,
                awaiting,
            )

    async def _has_content(
        self,
        session: Session,
        view: View,
        engine: Engine,
        wanted: CompactionRequest,
        call: ShouldCompactCall,
        *,
        due: bool,
    ) -> bool:
        """True where a compaction that is forced would find something to take."""
        if call.preflight:
            return due or view.steps > engine.declared.tail_steps
        if view is session.view:
            view = await self.compactor.planned_over(session, engine)
        made = await self.compactor.next_pass(engine, session, view, wanted, 0)
        return isinstance(made, Pass)


def _judged(
    engine: Engine, view: View, available: ReferenceTokens, more: ReferenceTokens
) -> tuple[int, int, bool]:
    """The view's tokens as it is shown, above how many a compaction is due, and whether one is."""
    tokens = view.view_tokens() - sum(engine.saved(view, available).values()) + more
    due = engine.due(view, available, with_uncounted(view, more))
    return tokens, engine.limit(view, available), due


def awaits_usage(state: SessionState) -> bool:
    """True where a host that reports usage has reported none since the newest compaction."""
    return state.usage.reports > 0 and state.compactions > state.usage.compactions


def defers(engine: Engine, session: Session, limit: ReferenceTokens) -> bool:
    """True where an estimate waits for what the provider says of the next prompt: the last one had
    room, and hardly anything came since."""
    stored = session.head.message_tokens if session.head is not None else 0
    return goes_by_attempts(engine) and session.state.attempts.defers(stored, limit)


def _reason(*, due: bool, over: bool, content: bool) -> str:
    if due:
        return OVER if over else CROWDED
    if not over:
        return BELOW
    return SHOWN_FITS if content else NOTHING
