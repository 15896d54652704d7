"""GetStatus: how a session is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from contextengine_server.compaction.model_failure import blocked
from contextengine_server.context.budget import Budget, ReferenceTokens
from contextengine_server.context.scope import Scope
from contextengine_server.context.view import View
from contextengine_server.engines.companion import companion_of
from contextengine_server.engines.contract import Engine, facts_of
from contextengine_server.engines.failure import EngineBroken
from contextengine_server.errors import BudgetImpossible
from contextengine_server.session.address import Addresses, Ref
from contextengine_server.session.assembly.budget import (
    BudgetDefaults,
    BudgetModel,
    BudgetSpec,
    budget_of,
    target,
)
from contextengine_server.session.failures import Failure
from contextengine_server.session.selection import Selected, Selection
from contextengine_server.session.sessions import Sessions
from contextengine_server.session.state import SessionState
from contextengine_server.session.usage.guard import GuardUse, TokenGuard
from contextengine_server.store.debts import Debt
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Costs, SessionHead, Spawn
from contextengine_server.summarize import SummaryPolicy
from contextengine_server.summarize.guards.guarded import GuardStates, GuardStatus


class ViewStatus(msgspec.Struct, frozen=True):
    """What is held of a session's view. Tokens in the reference encoding."""

    tokens: ReferenceTokens
    steps: int
    window_from_step: int
    pending_calls: int
    abandoned_calls: int
    max_depth: int
    faults: Mapping[str, int]
    """How often in a row parts of the engine failed over it, by their names."""


class SummarizerState(msgspec.Struct, frozen=True):
    """Who writes a session's summaries, and how much of them is left."""

    policy: SummaryPolicy
    guards: GuardStatus
    attached: int
    open_jobs: int


class SessionStatus(msgspec.Struct, frozen=True):
    """Everything that hosts and operators ask of a session."""

    scope: Scope
    selected: Selected
    failure: Failure | None
    head: SessionHead
    state: SessionState
    view: ViewStatus
    target: BudgetModel
    budget: Budget | None
    """None: its window leaves nothing."""
    method: str
    current_for_key: bool
    live_children: int
    spawn: Spawn | None
    parent_key: str
    """The key that the session's parent stands under. Empty: none."""
    summarizers: SummarizerState
    jobs: Sequence[Debt]
    now_ms: int
    limit: ReferenceTokens
    """The tokens of messages from which on its engine compacts; 0: never by itself."""
    facts: dict[str, object]
    """What its engine says of itself besides."""
    blocked: str
    """Why no compaction begins by itself now; empty: one may."""
    guarded: GuardUse | None
    """How much of its agent's caps is used; None: no cap holds for its engine."""
    costs: Sequence[Costs] = ()
    """What the calls of the tenant's agents took, by agent and model."""
    disk_bytes: int | None = None
    """None: it was not asked for."""


class GetStatus(msgspec.Struct, frozen=True):
    """Looks at sessions."""

    addresses: Addresses
    sessions: Sessions
    store: Store
    selection: Selection
    budgets: BudgetDefaults
    guards: GuardStates
    attached: Callable[[str], int]
    """How many harnesses of a tenant lend their models now."""
    guard: TokenGuard

    async def run(
        self, tenant: str, ref: Ref, at_least_revision: int, *, sized: bool = False
    ) -> SessionStatus:
        """The session as it is, once it is at least at this revision; `sized`: and what it takes.
        Raises SessionNotFound, DeadlinePassed."""
        scope = (await self.addresses.find(tenant, ref)).scope
        await self.sessions.reached(scope, at_least_revision)
        selected = await self.selection.engine_for(scope)
        jobs = await self.store.debts(scope)
        async with self.sessions.open(scope) as session:
            head, state, view = session.require(), session.state, session.view
            newest = view.atoms[-1] if view.atoms else None
            seen = ViewStatus(
                tokens=ReferenceTokens(view.view_tokens()),
                steps=view.steps,
                window_from_step=view.base,
                pending_calls=len(newest.open) if newest is not None and newest.pending else 0,
                abandoned_calls=sum(map(len, view.abandoned.values())),
                max_depth=max((s.depth for s in session.live_summaries), default=0),
                faults={part: fault.count for part, fault in view.faults.items()},
            )
            aim = target(session.head, session.state)
            budget = self._budget(aim)
            limit, facts = _told(selected.engine, view, budget)
            companion = companion_of(selected.engine)
            if companion is not None:
                facts = {**companion.status(scope), **facts}
            method = session.encoding.counter.method
            watched = selected.engine.id in self.guard.engines
            guarded = await self.guard.use(session) if watched else None
        current = head.session_key and await self.store.current_session(
            scope.tenant, scope.agent, head.session_key
        )
        spawn = await self.store.spawns.newest_of(scope)
        parent = None if spawn is None else await self.store.head(spawn.parent)
        return SessionStatus(
            scope=scope,
            selected=selected,
            failure=self.selection.failures.of(scope.tenant, selected.chosen or selected.engine.id),
            head=head,
            state=state,
            view=seen,
            target=aim,
            budget=budget,
            method=method,
            current_for_key=bool(head.session_key) and current == scope.session,
            live_children=await self.store.spawns.live_children(scope),
            spawn=spawn,
            parent_key="" if parent is None else parent.session_key,
            summarizers=await self._summarizers(scope),
            jobs=jobs,
            now_ms=self.sessions.clock_ms(),
            limit=limit,
            facts=facts,
            blocked=blocked(selected.engine, state, self.sessions.clock_ms()),
            guarded=guarded,
            costs=await self.store.ledger.costs(scope.tenant),
            disk_bytes=await self.store.size(scope) if sized else None,
        )

    def _budget(self, aim: BudgetModel) -> Budget | None:
        try:
            return budget_of(BudgetSpec(), aim, self.budgets)
        except BudgetImpossible:
            return None

    async def _summarizers(self, scope: Scope) -> SummarizerState:
        policy = self.selection.policy(scope)
        guards = await self.guards.state(scope.tenant)
        return SummarizerState(
            policy,
            guards.status(policy, self.sessions.clock_ms()),
            self.attached(scope.tenant),
            await self.store.model_leases.open_count(scope.tenant),
        )


def _told(
    engine: Engine, view: View, budget: Budget | None
) -> tuple[ReferenceTokens, dict[str, object]]:
    """An engine's threshold and what else it says of itself. That it fails is said where it is
    asked for something."""
    available = ReferenceTokens(budget.reference if budget is not None else 0)
    if available <= 0:
        return ReferenceTokens(0), {}
    told = facts_of(engine)
    try:
        limit = engine.limit(view, available) if engine.threshold else 0
        return ReferenceTokens(limit), told(view, available) if told is not None else {}
    except EngineBroken:
        return ReferenceTokens(0), {}
