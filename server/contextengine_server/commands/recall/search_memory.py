"""Search of what an agent remembers, and the tool of it."""

from __future__ import annotations

import msgspec

from contextengine_server.context.scope import Scope
from contextengine_server.errors import FieldViolation, PermissionDenied
from contextengine_server.memory.search import FactPage, MemoryQuery, search_memory
from contextengine_server.session.address import Addresses, Ref, not_found
from contextengine_server.session.sessions import Sessions
from contextengine_server.session.state import SessionState
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import SessionHead
from contextengine_server.telemetry.tracing import CURRENT


class FactsFound(msgspec.Struct, frozen=True):
    """What was found, and in which session it was asked for."""

    scope: Scope
    page: FactPage
    revision: int


class SearchMemory(msgspec.Struct, frozen=True):
    """Searches memory."""

    addresses: Addresses
    sessions: Sessions
    store: Store

    async def run(
        self, tenant: str, ref: Ref, query: MemoryQuery, at_least_revision: int
    ) -> FactsFound:
        """A page of facts. Raises SessionNotFound, DeadlinePassed, what is wrong with the query,
        and PermissionDenied for a child."""
        address = await self.addresses.find(tenant, ref)
        await self.sessions.reached(address.scope, at_least_revision)
        head = await self.store.head(address.scope)
        if head is None:
            raise not_found(address.scope)
        if is_child(head):
            text = "memory is not open to a session that was spawned: its parent's host may ask"
            raise PermissionDenied(f"scope: {text}", violations=[FieldViolation("scope", text)])
        with CURRENT.get().span("search"):
            page = await search_memory(self.store.memory, head.scope, query)
        return FactsFound(head.scope, page, head.revision)


def is_child(head: SessionHead) -> bool:
    """True for a session that was spawned: what its parent's agent knows is not its own to ask
    for."""
    return SessionState.decode(head.state).depth > 0
