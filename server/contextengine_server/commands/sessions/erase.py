"""Erase: all of an agent or of a tenant, a part at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import monotonic

import msgspec

from contextengine_server.commands.sessions.delete import Delete
from contextengine_server.context.scope import Scope
from contextengine_server.session.address import Ref
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Deleted

DEFAULT_SESSIONS, MAX_SESSIONS = 100, 1_000

MOST_S = 5.0
"""Once a part took this long it ends: whoever asks hears how far it is, and others' writes have
their turn."""

EraseSession = Callable[[Scope], Awaitable[Deleted]]
"""Erases a session, and those that stand on it."""


class Erased(msgspec.Struct, frozen=True):
    """What a part of an erasure took away."""

    sessions: tuple[str, ...]
    messages: int
    summaries: int
    rows: int
    """Beside sessions."""
    more: bool
    """Whether something is left."""


class Erase(msgspec.Struct, frozen=True):
    """Erases what is stored of an agent or a tenant.

    It keeps no place: what is left is what there is to do, so it goes on after any end, and to ask
    twice is to ask once. Each session goes in a transaction of its own, the rows beside them last:
    as long as one of these is there, so is the answer that there is more.
    """

    store: Store
    erase: EraseSession
    forgotten: Callable[[str], None] = lambda tenant: None
    """Told when rows beside sessions of a tenant went."""
    now: Callable[[], float] = monotonic

    async def run(self, tenant: str, agent: str, most: int) -> Erased:
        """Erases a part: at most so many sessions, and those that stand on them. Sessions that
        begin meanwhile stay."""
        started = self.now()
        heads = (
            await self.store.agent_sessions(tenant, agent, limit=most)
            if agent
            else await self.store.list_sessions(tenant, limit=most)
        )
        found: list[Deleted] = []
        late = False
        for head in heads:
            if late := self.now() - started > MOST_S:
                break
            found.append(await self.erase(head.scope))
        more = late or len(heads) == most
        rows = 0
        if not more:
            rows = await self.store.forget(tenant, agent)
            self.forgotten(tenant)
        return Erased(
            tuple(session for gone in found for session in gone.sessions),
            sum(gone.messages for gone in found),
            sum(gone.summaries for gone in found),
            rows,
            more,
        )


def erasing_all(delete: Delete) -> EraseSession:
    """Erases as `Sessions.Delete` does, and leaves the overwriting to the end."""

    async def erase(scope: Scope) -> Deleted:
        return await delete.run(
            scope.tenant,
            Ref(scope.agent, scope.session),
            expected_revision=None,
            cascade=True,
            overwritten=False,
        )

    return erase
