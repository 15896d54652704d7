"""List and Get: which engines there are, and with which options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec
from pydantic import BaseModel

from contextengine_server.config.policy import PolicySettings
from contextengine_server.context.scope import Scope
from contextengine_server.engines.catalogue import Refused
from contextengine_server.engines.contract import Engine
from contextengine_server.engines.registration import InvalidEngine, Registration
from contextengine_server.errors import DomainError
from contextengine_server.session.failures import Failure, engine_failed
from contextengine_server.session.selection import Selection
from contextengine_server.session.sessions import SessionCache


class EngineStatus(msgspec.Struct, frozen=True):
    """An engine as it is."""

    registration: Registration
    engine: Engine | None
    """As it is configured; None: it cannot be made."""
    unavailable: str
    """Why it cannot be made."""
    failure: Failure | None
    sessions: int
    """How many warm sessions of the tenant it serves."""


class EngineList(msgspec.Struct, frozen=True):
    """The engines that can be chosen, the default first, and those that are installed and
    cannot."""

    engines: Sequence[EngineStatus]
    refused: Sequence[Refused]


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


class ListEngines(msgspec.Struct, frozen=True):
    """Lists engines."""

    selection: Selection
    cache: SessionCache

    async def run(self, tenant: str) -> EngineList:
        """Every engine that is installed."""
        default, registry = self.selection.default, self.selection.registry
        ids = sorted(registry.ids, key=lambda one: (one != default, one))
        served = await self.served(tenant)
        engines = [self.status(tenant, registry.registration(one), served) for one in ids]
        return EngineList(engines, registry.refused)

    async def served(self, tenant: str) -> Mapping[str, int]:
        """How many warm sessions of the tenant each engine serves."""
        served: Counter[str] = Counter()
        for session in self.cache.all():
            if session.scope.tenant == tenant and session.head is not None:
                with suppress(DomainError):
                    served[(await self.selection.engine_for(session.scope)).engine.id] += 1
        return served

    def status(
        self, tenant: str, registration: Registration, served: Mapping[str, int]
    ) -> EngineStatus:
        """How an engine is for a tenant."""
        registry, engine, why = self.selection.registry, None, ""
        try:
            engine = registry.configured(registration.id)
        except InvalidEngine as error:
            why = str(error)
        failure = self.selection.failures.of(tenant, registration.id)
        return EngineStatus(registration, engine, why, failure, served.get(registration.id, 0))


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
