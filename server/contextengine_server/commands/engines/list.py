"""List: which engines there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec

from contextengine_server.engines.catalogue import Refused
from contextengine_server.engines.contract import Engine
from contextengine_server.engines.registration import InvalidEngine, Registration
from contextengine_server.errors import DomainError
from contextengine_server.session.failures import Failure
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
