"""Get: one engine, with the options that hold for a scope."""

from __future__ import annotations

import msgspec
from pydantic import BaseModel

from contextengine_server.config.policy import PolicySettings
from contextengine_server.context.scope import Scope
from contextengine_server.engines.registration import InvalidEngine
from contextengine_server.session.failures import engine_failed
from contextengine_server.session.selection import Selection

from .list import EngineStatus, ListEngines


class EngineOptions(msgspec.Struct, frozen=True):
    """An engine with the options that hold for a scope."""

    status: EngineStatus
    values: BaseModel
    source: str
    """Who chose the engine."""
    options_source: str
    """Who chose its options."""
    policy: PolicySettings
    """What governs the summaries of the scope, whichever engine serves it."""
    policy_source: str
    """Who chose the nearest of it."""


class GetEngine(msgspec.Struct, frozen=True):
    """Answers one engine."""

    selection: Selection
    engines: ListEngines

    async def run(self, scope: Scope, engine_id: str) -> EngineOptions:
        """An engine with its options, as they hold for a scope; no id: the one that serves it.
        Raises UnknownEngine, EngineFailed."""
        registry = self.selection.registry
        selected = await self.selection.engine_for(scope)
        asked = engine_id or selected.engine.id
        try:
            registration = registry.registration(asked)
        except InvalidEngine as error:
            raise engine_failed(asked, "load", error, "mend or remove its plugin") from error
        values, source = registry.options(registration.id), "request"
        options_source = "configuration"
        if registration.id == selected.engine.id:
            values = selected.engine.options
            source, options_source = selected.source, selected.options_source
        tenant = scope.tenant
        served = await self.engines.served(tenant)
        status = self.engines.status(tenant, registration, served)
        policy, policy_source = self.selection.policy_settings(scope)
        return EngineOptions(status, values, source, options_source, policy, policy_source)
