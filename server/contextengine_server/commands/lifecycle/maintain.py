"""Maintain: which rewrites of the host's transcript an engine would like."""

from __future__ import annotations

import msgspec

from contextengine_server.session.address import Addresses, Ref, not_found
from contextengine_server.session.selection import Selected, Selection
from contextengine_server.store.protocols import Store


class Maintain(msgspec.Struct, frozen=True):
    """Asks engines for rewrites; none that is shipped wants any."""

    addresses: Addresses
    selection: Selection
    store: Store

    async def run(self, tenant: str, ref: Ref) -> Selected:
        """The engine that was asked. Raises SessionNotFound."""
        scope = (await self.addresses.find(tenant, ref)).scope
        if await self.store.head(scope) is None:
            raise not_found(scope)
        return await self.selection.engine_for(scope)
