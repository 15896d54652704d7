"""Which engine serves whom: the configuration, or what an operator assigned to the tenant, the
agent or the session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from contextengine_server.config.schema import merge
from contextengine_server.context.scope import Scope
from contextengine_server.context.value import value
from contextengine_server.engines.contract import Engine
from contextengine_server.engines.registry import Registry
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Assignment
from contextengine_server.telemetry.tracing import CURRENT


@value
class Selected:
    """An engine and who chose it: `configuration`, `tenant`, `agent` or `session`."""

    engine: Engine
    source: str
    options_source: str = "configuration"
    chosen: str = ""
    """The id that was chosen, where another engine stands in for it."""


@value
class Choice:
    """What was chosen for a scope: an engine's id and its options, each with who chose it."""

    engine_id: str
    source: str
    options: dict[str, Any]
    options_source: str


@dataclass(slots=True)
class Failure:
    """The first failure of an engine; later ones are counted."""

    engine_id: str
    operation: str
    reason: str
    time_ms: int
    count: int = 1


class Selection:
    """Resolves engines. Assignments of a tenant are read once and kept in step by `assign`."""

    def __init__(self, registry: Registry, store: Store, default: str) -> None:
        self.registry = registry
        self.default = default
        self.failures: dict[str, Failure] = {}
        self._store = store
        self._assigned: dict[str, dict[tuple[str, str], Assignment]] = {}
        self._version = 0
        self._plain: Selected | None = None

    async def select(self, scope: Scope) -> Selected:
        """The engine for a scope. Raises UnknownEngine, InvalidEngine: resolution fails closed."""
        assigned = await self._assignments(scope.tenant)
        if not assigned:
            if self._plain is None:
                self._plain = self._make(self._choose(scope, assigned))
            return self._plain
        return self._make(self._choose(scope, assigned))

    async def choose(self, scope: Scope, *, inherited: bool = False) -> Choice:
        """What is chosen for a scope; `inherited`: what would be, had it no assignment of its
        own."""
        assigned = await self._assignments(scope.tenant)
        own = (scope.agent, scope.session)
        if inherited:
            assigned = {key: row for key, row in assigned.items() if key != own}
        return self._choose(scope, assigned)

    async def _assignments(self, tenant: str) -> dict[tuple[str, str], Assignment]:
        known = self._assigned.get(tenant)
        while known is None:
            version = self._version
            rows = await self._store.assignments(tenant)
            if version == self._version:  # else they may be older than what was assigned meanwhile
                known = self._assigned[tenant] = {(row.agent, row.session): row for row in rows}
        return known

    def _choose(self, scope: Scope, assigned: dict[tuple[str, str], Assignment]) -> Choice:
        engine_id, source, options_source = self.default, "configuration", "configuration"
        overrides: dict[str, dict[str, Any]] = {}
        sources: dict[str, str] = {}
        levels = [("tenant", ("", ""))]
        levels += [("agent", (scope.agent, ""))] if scope.agent else []
        levels += (
            [("session", (scope.agent, scope.session))] if scope.agent and scope.session else []
        )
        for level, key in levels:
            row = assigned.get(key)
            if row is None:
                continue
            if row.engine_id:
                engine_id, source = row.engine_id, level
            for engine, options in orjson.loads(row.options or b"{}").items():
                overrides[engine] = merge(overrides.get(engine, {}), options)
                sources[engine] = level
        return Choice(
            engine_id, source, overrides.get(engine_id, {}), sources.get(engine_id, options_source)
        )

    def _make(self, choice: Choice) -> Selected:
        options = self.registry.options(choice.engine_id, choice.options)
        return Selected(
            self.registry.engine(choice.engine_id, options), choice.source, choice.options_source
        )

    async def assign(
        self, scope: Scope, engine_id: str, target: str, options: dict[str, Any]
    ) -> None:
        """Records an operator's choice: the engine (empty: as inherited), and options of the engine
        `target`, by their Python names. The session's next run uses it."""
        kept = orjson.dumps({target: options} if options else {})
        with CURRENT.get().span("commit"):
            await self._store.assign(
                Assignment(scope.tenant, scope.agent, scope.session, engine_id, kept)
            )
        self.forget(scope.tenant)

    def forget(self, tenant: str) -> None:
        """Reads the tenant's assignments again when they are next needed: they changed, or went
        with a session."""
        self._version += 1
        self._assigned.pop(tenant, None)

    def legacy(self) -> Engine:
        """The engine that `on_engine_failure: legacy` falls back to."""
        return self.registry.engine("legacy", self.registry.options("legacy", {}))

    def failed(self, engine_id: str, operation: str, reason: str, time_ms: int) -> Failure:
        """Records a failure: the first wins."""
        known = self.failures.get(engine_id)
        if known is not None:
            known.count += 1
            return known
        self.failures[engine_id] = Failure(engine_id, operation, reason, time_ms)
        return self.failures[engine_id]
