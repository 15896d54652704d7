"""Which servers are there over one store, so that each gives out its part of what tenants may hold
and not the whole again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from contextengine_server.context.scope import Scope
from contextengine_server.session.sweeper import Sweeper
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.protocols import Leases

BEAT_S = 3.0
"""How often each server says that it is there, and so for how long the parts of others may be too
large once one more begins."""
LEASE_S = 12.0
"""A server that said nothing for so long is gone, and the others give out its part."""
KIND = "server"


class Servers(Sweeper):
    """Has a lease by which the others know of this server; tells its place, from 0, and how many
    servers there are."""

    topic = "servers"
    failure = "the servers over the store were not counted"

    def __init__(self, leases: Leases, name: str, told: Callable[[int, int], None]) -> None:
        super().__init__()
        self._leases, self._name, self._told = leases, name, told
        self._scope = Scope("", "", name)

    async def sweep(self) -> None:
        """Says that this server is there, and counts who is. Raises StoreUnavailable."""
        await self._leases.take(self._scope, KIND, self._name, round(LEASE_S * 1_000))
        names = await self._leases.owners(KIND)
        if self._name in names:  # else its lease has run out since, and the next beat renews it
            self._told(names.index(self._name), len(names))

    def pause_s(self) -> float:
        """The time between two beats."""
        return BEAT_S

    async def stop(self) -> None:
        """It is gone: the others need not wait for its lease to run out."""
        await super().stop()
        with suppress(StoreUnavailable):
            await self._leases.give_back(self._scope, KIND, self._name)
