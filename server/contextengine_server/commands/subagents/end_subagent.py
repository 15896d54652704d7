"""EndSubagent: a child is over."""

from __future__ import annotations

import msgspec

from contextengine_server.session.address import Address, Addresses, Ref
from contextengine_server.session.children import COMPLETED, ChildSessions
from contextengine_server.session.lifecycle import Lifecycle
from contextengine_server.session.sessions import Sessions
from contextengine_server.store.protocols import Store


class EndSubagent(msgspec.Struct, frozen=True):
    """Ends children and their sessions."""

    addresses: Addresses
    sessions: Sessions
    store: Store
    children: ChildSessions
    lifecycle: Lifecycle

    async def run(self, tenant: str, child: Ref, reason: str, token: str) -> bool:
        """Ends a child and its session; True where it was known and alive. The token has the last
        word on which child."""
        address = await self.addresses.find(tenant, child)
        scope, alive = address.scope, False
        if token:
            spawn = await self.store.spawns.find(tenant, token)
            if spawn is None or not await self.children.names(address, child, spawn.child):
                return False
            scope = spawn.child
        else:
            spawn = await self.store.spawns.newest_of(scope)
        if spawn is not None:
            ended = await self.children.end(spawn, reason, take_back=reason != COMPLETED)
            alive = ended is not None
            if ended is not None and ended.erased:
                return True
        async with self.sessions.open(scope, lock=True) as session:
            if session.head is not None:
                done = await self.lifecycle.end(session, Address(scope), None, None)
                alive = alive or bool(done.numbers)
        return alive
