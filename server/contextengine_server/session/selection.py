"""Which engine serves whom: the configuration, or what an operator assigned to the tenant, to
sessions by pattern, to the agent or to the session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import orjson
import structlog

from contextengine_server.config.policy import GROUP, PolicySettings
from contextengine_server.config.schema import merge
from contextengine_server.context.scope import Scope
from contextengine_server.engines.assignments import Assigned, TenantAssignments
from contextengine_server.engines.contract import Engine
from contextengine_server.engines.patterns import SessionFacts, SessionPattern
from contextengine_server.engines.registration import InvalidEngine
from contextengine_server.engines.registry import Registry
from contextengine_server.errors import DomainError, EngineFailed
from contextengine_server.session.failures import Failure, Failures, engine_failed, how, reason
from contextengine_server.session.policies import AssignedOptions, Policies
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions
from contextengine_server.session.state import SessionState
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Assignment
from contextengine_server.summarize import SummaryPolicy
from contextengine_server.telemetry.events import Events
from contextengine_server.telemetry.tracing import CURRENT

log = structlog.get_logger("contextengine.engines")


class Selected(msgspec.Struct, frozen=True):
    """An engine and who chose it: `configuration`, `tenant`, `pattern`, `agent` or `session`."""

    engine: Engine
    source: str
    options_source: str = "configuration"
    chosen: str = ""
    """The id that was chosen, where another engine stands in for it."""


def _open_turn(session: Session) -> int | None:
    """The step of the user message whose turn is under way: the model called tools and has not said
    its last word. None: the session is between two turns, as far as it shows."""
    view = session.view
    return view.user_step if view.atoms and view.atoms[-1].calls else None


class Choice(msgspec.Struct, frozen=True):
    """What was chosen for a scope: an engine's id and its options, each with who chose it."""

    engine_id: str
    source: str
    options: tuple[dict[str, Any], ...]
    """By who chose them, the nearest last (see TenantAssignments.levels)."""
    options_source: str


KNOWN_FACTS = 100_000
"""Sessions of which it is kept what they are named by."""


class Selection:
    """Resolves engines. What is assigned in a tenant is read once and kept in step by `assign`."""

    def __init__(
        self,
        registry: Registry,
        policies: Policies,
        store: Store,
        default: str,
        events: Events,
        clock_ms: Callable[[], int],
        *,
        sessions: Sessions,
        falls_back: bool = False,
    ) -> None:
        self.registry = registry
        self.policies = policies
        self.default = default
        self.falls_back = falls_back
        """True where another engine stands in for one that fails (`on_engine_failure`)."""
        self._events, self._clock_ms = events, clock_ms
        self.failures = Failures()
        self._store = store
        self._assigned: dict[str, TenantAssignments] = {}
        self._stale: set[str] = set()
        self._version = 0
        self._plain: Selected | None = None
        self.unassigned: dict[str, Selected] = {}
        """The engine of the configuration, by tenant: of tenants within which nothing is assigned,
        so that it serves all of their sessions."""
        self._facts: dict[Scope, SessionFacts] = {}
        self._sessions = sessions
        self._turns: dict[Scope, tuple[int, Selected]] = {}
        """What serves on although another was chosen meanwhile: by session, with the step of the
        user message whose turn is under way. A process that starts anew knows of none."""

    async def engine_for(self, scope: Scope, key: str = "", *, next_turn: bool = False) -> Selected:
        """The engine that serves a scope, or the one that stands in for it. `key` is that of a
        session which may not be stored yet. `next_turn`: the one from the session's next turn on;
        else one that a turn under way began with serves until it is over. Raises UnknownEngine,
        EngineFailed."""
        if self._turns and not next_turn:
            kept = await self._kept_for_turn(scope)
            if kept is not None:
                return kept
        try:
            return await self.select(scope, key)
        except InvalidEngine as error:
            choice = await self.choose(scope)
            failed = self.failed(scope, choice.engine_id, "load", error)
            if not self.falls_back:
                raise failed from error
            return Selected(
                self.fallback(), choice.source, choice.options_source, chosen=choice.engine_id
            )

    async def select(self, scope: Scope, key: str = "") -> Selected:
        """The engine for a scope. Raises UnknownEngine, InvalidEngine: resolution fails closed."""
        assigned = await self._assignments(scope.tenant)
        if not assigned:
            if self._plain is None:
                self._plain = self._make(self._choose([]))
            if not any(held.tenant == scope.tenant for held in self._turns):
                self.unassigned[scope.tenant] = self._plain
            return self._plain
        return self._make(self._choose(assigned.levels(await self._named(scope, assigned, key))))

    async def choose(self, scope: Scope, *, inherited: bool = False) -> Choice:
        """What is chosen for a scope; `inherited`: what would be, had it no assignment of its
        own."""
        assigned = await self._assignments(scope.tenant)
        facts = await self._named(scope, assigned)
        if inherited:
            assigned = assigned.without((scope.agent, scope.session))
        return self._choose(assigned.levels(facts))

    async def by_pattern(self, tenant: str, pattern: SessionPattern) -> Selected:
        """What a pattern chooses over the tenant's own choice."""
        assigned = await self._assignments(tenant)
        places = ("tenant", ("", "")), ("pattern", ("", pattern.row))
        rows = [(level, assigned.at(place)) for level, place in places]
        return self._make(self._choose([(level, row) for level, row in rows if row is not None]))

    async def _named(
        self, scope: Scope, assigned: TenantAssignments, key: str = ""
    ) -> SessionFacts:
        """What a session is named by, read only where a pattern asks."""
        if not scope.agent:
            return SessionFacts("")  # of a tenant, or of a pattern's own place
        facts = SessionFacts(scope.agent, scope.session, key)
        if not assigned.asks_sessions or not scope.session:
            return facts
        head = await self._store.head(scope)
        if head is not None:
            state = SessionState.decode(head.state)
            facts = SessionFacts(
                scope.agent,
                scope.session,
                head.session_key or key,
                head.model,
                state.model.window or None,
            )
        if len(self._facts) >= KNOWN_FACTS:
            self._facts.clear()
        self._facts[scope] = facts
        return facts

    def policy(self, scope: Scope) -> SummaryPolicy:
        """What governs the summaries of a scope, by the assignments as they were read last: when
        its engine was selected."""
        return self.policies.policy([policy for _, policy in self._policy_layers(scope)])

    def policy_settings(self, scope: Scope) -> tuple[PolicySettings, str]:
        """The same as settings, and who chose the nearest of them."""
        layers = self._policy_layers(scope)
        source = layers[-1][0] if layers else "configuration"
        return self.policies.settings([policy for _, policy in layers]), source

    def _policy_layers(self, scope: Scope) -> list[tuple[str, dict[str, Any]]]:
        assigned = self._assigned.get(scope.tenant)
        if not assigned:
            return []
        facts = self._facts.get(scope) or SessionFacts(scope.agent, scope.session)
        return [(level, row.policy) for level, row in assigned.levels(facts) if row.policy]

    async def _assignments(self, tenant: str) -> TenantAssignments:
        known = None if tenant in self._stale else self._assigned.get(tenant)
        while known is None:
            version = self._version
            rows = await self._store.assignments(tenant)
            if version == self._version:  # else they may be older than what was assigned meanwhile
                known = TenantAssignments(
                    {(row.agent, row.session): self._read(row) for row in rows}
                )
                self._assigned[tenant] = known
                self._stale.discard(tenant)
        return known

    def _read(self, row: Assignment) -> Assigned:
        """A row. In rows of earlier versions the policy stands among the options of an engine."""
        options: dict[str, dict[str, Any]] = orjson.loads(row.options or b"{}")
        policy = options.pop(GROUP, {})
        for engine_id in set(options) & set(self.registry.ids):
            parted = self.policies.parted(options[engine_id], self.registry.model(engine_id))
            options[engine_id], policy = parted.engine, merge(parted.policy, policy)
        given = {engine_id: own for engine_id, own in options.items() if own}
        return Assigned(row.engine_id, given, policy)

    def _choose(self, rows: Sequence[tuple[str, Assigned]]) -> Choice:
        engine_id, source = next(
            ((row.engine_id, level) for level, row in reversed(rows) if row.engine_id),
            (self.default, "configuration"),
        )
        given = [(row.options[engine_id], level) for level, row in rows if engine_id in row.options]
        options_source = given[-1][1] if given else "configuration"
        return Choice(engine_id, source, tuple(options for options, _ in given), options_source)

    def _make(self, choice: Choice) -> Selected:
        options = self.registry.options(choice.engine_id, *choice.options)
        return Selected(
            self.registry.engine(choice.engine_id, options), choice.source, choice.options_source
        )

    async def keep_for_turns(self, tenant: str) -> None:
        """Notes what serves the tenant's sessions whose turn is under way, before a choice
        changes."""
        for held in [held for held in self._turns if held.tenant == tenant]:
            await self._kept_for_turn(held)
        for session in self._sessions.cache.all():
            turn = _open_turn(session)
            if session.scope.tenant == tenant and turn is not None:
                with suppress(DomainError):
                    self._turns[session.scope] = turn, await self.engine_for(session.scope)

    async def _kept_for_turn(self, scope: Scope) -> Selected | None:
        """What serves a session until its turn is over. None: what is chosen."""
        kept = self._turns.get(scope)
        if kept is None:
            return None
        await self._sessions.caught_up(scope)  # the turn may have ended on another server
        session = self._sessions.cache.find(scope)
        if session is None or _open_turn(session) != kept[0]:
            self._turns.pop(scope, None)
            return None
        return kept[1]

    async def assign(
        self, scope: Scope, engine_id: str, target: str, options: AssignedOptions
    ) -> None:
        """Records an operator's choice: the engine (empty: as inherited), options of the engine
        `target` by their Python names, and the policy. The session's next run uses it."""
        parts = {target: options.engine, GROUP: options.policy}
        kept = orjson.dumps({name: part for name, part in parts.items() if part})
        with CURRENT.get().span("commit"):
            await self._store.assign(
                Assignment(scope.tenant, scope.agent, scope.session, engine_id, kept)
            )
        self.forget(scope.tenant)

    def forget(self, tenant: str) -> None:
        """Reads the tenant's assignments again when they are next needed: they changed, or went
        with a session."""
        self._version += 1
        self.unassigned.pop(tenant, None)
        self._stale.add(tenant)
        self._facts.clear()

    async def assigned_elsewhere(self, tenant: str) -> None:
        """Another server wrote an assignment of the tenant; turns that are under way here end as
        they began."""
        if tenant in self._assigned or tenant in self.unassigned:
            await self.keep_for_turns(tenant)
            self.forget(tenant)

    async def assigned_unheard(self) -> None:
        """Others may have written assignments of any tenant."""
        for tenant in list(self._assigned):
            await self.assigned_elsewhere(tenant)

    def fallback(self) -> Engine:
        """The engine that stands in for one that failed."""
        return self.registry.fallback()

    def failed(
        self, scope: Scope, engine_id: str, operation: str, error: Exception
    ) -> EngineFailed:
        """Records an engine's failure: the first is kept, later ones are counted, each is logged
        and an event. Answers the error that the caller gets where none stands in."""
        failure = Failure(engine_id, operation, how(error), reason(error), self._clock_ms())
        self.failures.note(scope.tenant, failure)
        log.error(
            "engine_failed",
            engine=engine_id,
            operation=operation,
            reason=failure.reason,
            exc_info=error,
        )
        self._events.emit(
            "engine:failed",
            *scope,
            attributes={"engine": engine_id, "operation": operation, "how": failure.how},
        )
        advice = "assign another engine or set engine.on_engine_failure"
        return engine_failed(engine_id, operation, error, advice)
