"""List: which sessions there are."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import SessionHead

Place = tuple[int, str, str]
"""Where a page of sessions ends: time of the last write, agent, session."""


class Listed(msgspec.Struct, frozen=True):
    """A session, and whether its key names it now."""

    head: SessionHead
    current_for_key: bool


class SessionPage(msgspec.Struct, frozen=True):
    """Some sessions, and where the next page begins."""

    sessions: Sequence[Listed]
    next_place: Place | None


class ListSessions(msgspec.Struct, frozen=True):
    """Lists sessions, newest write first."""

    store: Store

    async def run(
        self, tenant: str, agent: str, key: str, size: int, after: Place | None
    ) -> SessionPage:
        """A page of the tenant's sessions; empty: of any agent, of any key."""
        heads = await self.store.list_sessions(
            tenant, agent=agent, session_key=key, limit=size + 1, after=after
        )
        page = heads[:size]
        last = page[-1] if len(heads) > size else None
        place = None
        if last is not None:
            place = last.updated_ms, last.scope.agent, last.scope.session
        return SessionPage([await listed(self.store, head) for head in page], place)


async def listed(store: Store, head: SessionHead) -> Listed:
    """A session as it is listed."""
    scope, current = head.scope, None
    if head.session_key:
        current = await store.current_session(scope.tenant, scope.agent, head.session_key)
    return Listed(head, current == scope.session)
