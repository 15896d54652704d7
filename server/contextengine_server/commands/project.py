"""Project: a session's context in the form of a harness or a provider."""

from __future__ import annotations

import msgspec

from contextengine_server.session.address import Addresses, not_found
from contextengine_server.session.assembly.assembler import Assembler
from contextengine_server.session.assembly.assembly import AssembleCall, Assembly
from contextengine_server.session.sessions import Sessions


class Project(msgspec.Struct, frozen=True):
    """Assembles what is to be projected."""

    addresses: Addresses
    sessions: Sessions
    assembler: Assembler

    async def run(self, call: AssembleCall) -> Assembly:
        """The assembly of a session that is there. Raises SessionNotFound, DeadlinePassed and what
        is wrong with the budget."""
        address = await self.addresses.find(call.tenant, call.ref)
        await self.sessions.reached(address.scope, call.at_least_revision)
        if await self.sessions.store.head(address.scope) is None:
            raise not_found(address.scope)
        return await self.assembler.assemble(call, address)
