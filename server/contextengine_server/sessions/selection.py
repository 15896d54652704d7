"""Which engine serves whom: the configuration, or what an operator assigned to the tenant, the agent or the session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from contextengine_server.context.scope import Scope
from contextengine_server.engines.contract import Engine
from contextengine_server.engines.registry import Registry
from contextengine_server.store.interface import Assignment, Store


@dataclass(slots=True, frozen=True)
class Selected:
    """An engine and who chose it: `configuration`, `tenant`, `agent` or `session`."""

    engine: Engine
    source: str
    options_source: str = "configuration"


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
        self._plain: Selected | None = None

    async def select(self, scope: Scope) -> Selected:
        """The engine for a scope. Raises UnknownEngine: resolution fails closed."""
        assigned = self._assigned.get(scope.tenant)
        if assigned is None:
            rows = await self._store.assignments(scope.tenant)
            assigned = self._assigned[scope.tenant] = {(row.agent, row.session): row for row in rows}
        if not assigned:
            if self._plain is None:
                self._plain = self._make(self.default, "configuration", {}, "configuration")
            return self._plain
        engine_id, source, options_source = self.default, "configuration", "configuration"
        overrides: dict[str, dict[str, Any]] = {}
        for level, key in (
            ("tenant", ("", "")),
            ("agent", (scope.agent, "")),
            ("session", (scope.agent, scope.session)),
        ):
            row = assigned.get(key)
            if row is None or (level != "tenant" and not key[0]):
                continue
            if row.engine_id:
                engine_id, source = row.engine_id, level
            options = orjson.loads(row.options or b"{}")
            if options:
                overrides[engine_id] = overrides.get(engine_id, {}) | options
                options_source = level
        return self._make(engine_id, source, overrides.get(engine_id, {}), options_source)

    def _make(self, engine_id: str, source: str, overrides: dict[str, Any], options_source: str) -> Selected:
        options = self.registry.options(engine_id, overrides)
        return Selected(self.registry.engine(engine_id, options), source, options_source)

    async def assign(self, assignment: Assignment) -> None:
        """Records an operator's choice. The session's next run uses it."""
        await self._store.assign(assignment)
        self._assigned.pop(assignment.tenant, None)

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
