"""EndSession: a conversation is over for now."""

from __future__ import annotations

import msgspec

from contextengine_server.compaction.companions import Companions
from contextengine_server.compaction.memory_job import MemoryJob
from contextengine_server.session.address import Addresses, Ref
from contextengine_server.session.change import Changed
from contextengine_server.session.lifecycle import Lifecycle
from contextengine_server.session.receipt import Request
from contextengine_server.session.sessions import Sessions


class EndSession(msgspec.Struct, frozen=True):
    """Ends conversations; a later write opens one again."""

    addresses: Addresses
    sessions: Sessions
    lifecycle: Lifecycle
    memory: MemoryJob
    companions: Companions

    async def run(
        self, tenant: str, ref: Ref, request: Request | None, expected_revision: int | None
    ) -> Changed:
        """Raises SessionNotFound, RevisionMismatch."""
        address = await self.addresses.find(tenant, ref)
        told = await self.memory.before_end(address)
        async with self.sessions.open(address.scope, lock=True) as session:
            session.require()
            done = await self.lifecycle.end(session, address, request, expected_revision, told)
        await self.companions.settled(address.scope)
        return done
