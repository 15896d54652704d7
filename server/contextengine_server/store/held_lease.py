"""Holding a lease for as long as something takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from secrets import token_hex

import structlog

from contextengine_server.context.scope import Scope
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.protocols import Leases

LEASE_MS = 15_000
"""How long others wait for a server that is gone."""
LOOK_S = 0.25
"""How often it is looked whether another server is done."""

log = structlog.get_logger("contextengine.store")


@asynccontextmanager
async def held(leases: Leases, scope: Scope, kind: str) -> AsyncIterator[bool]:
    """Waits until nobody has the lease, and holds it. True: somebody had it until now.

    A server that loses it, because it was paused for longer than it lasts, is not stopped: what it
    commits must be refused where another came first."""
    owner, waited, keeper = token_hex(8), False, None
    try:
        while not await leases.take(scope, kind, owner, LEASE_MS):
            waited = True
            await asyncio.sleep(LOOK_S)
        keeper = asyncio.create_task(_keep(leases, scope, kind, owner))
        yield waited
    finally:
        if keeper is not None:
            keeper.cancel()
        with suppress(StoreUnavailable):  # it runs out
            await leases.give_back(scope, kind, owner)


async def _keep(leases: Leases, scope: Scope, kind: str, owner: str) -> None:
    while True:
        await asyncio.sleep(LEASE_MS / 3_000)
        try:
            if not await leases.take(scope, kind, owner, LEASE_MS):
                return
        except StoreUnavailable:
            log.warning("a lease was not renewed", kind=kind, session=scope.session)
