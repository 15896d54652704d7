"""Get: one session, as it is listed."""

from __future__ import annotations

import msgspec

from contextengine_server.session.address import Addresses, Ref, not_found
from contextengine_server.store.protocols import Store

from .list import Listed, listed


class GetSession(msgspec.Struct, frozen=True):
    """Answers one session."""

    addresses: Addresses
    store: Store

    async def run(self, tenant: str, ref: Ref) -> Listed:
        """Raises SessionNotFound."""
        scope = (await self.addresses.find(tenant, ref)).scope
        head = await self.store.head(scope)
        if head is None:
            raise not_found(scope)
        return await listed(self.store, head)
