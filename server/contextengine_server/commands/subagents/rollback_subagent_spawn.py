"""RollbackSubagentSpawn: a child that was prepared is not started."""

from __future__ import annotations

import msgspec

from contextengine_server.errors import InvalidField
from contextengine_server.session.address import Addresses, Ref
from contextengine_server.session.children import ROLLED_BACK, ChildSessions
from contextengine_server.store.protocols import Store


class RollbackSubagentSpawn(msgspec.Struct, frozen=True):
    """Takes preparations back."""

    addresses: Addresses
    store: Store
    children: ChildSessions

    async def run(self, tenant: str, token: str, parent: Ref) -> bool:
        """Takes a preparation back; False where there is nothing left to take back. Raises
        InvalidField for another's parent."""
        address = await self.addresses.find(tenant, parent)
        spawn = await self.store.spawns.find(tenant, token)
        if spawn is None:
            return False
        if not await self.children.names(address, parent, spawn.parent):
            raise InvalidField(
                "parent", "is not the parent of this spawn: give the one that it was prepared for"
            )
        return await self.children.end(spawn, ROLLED_BACK, take_back=True) is not None
