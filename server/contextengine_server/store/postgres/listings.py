"""Which sessions a PostgreSQL store has."""

from __future__ import annotations

from contextengine_server.context.scope import Scope
from contextengine_server.store.rows import SessionHead

from . import reads
from .connections import Connections


class PostgresListings:
    """The store's lists."""

    _connections: Connections

    async def list_sessions(
        self,
        tenant: str,
        *,
        agent: str = "",
        session_key: str = "",
        limit: int,
        after: tuple[int, str, str] | None = None,
    ) -> list[SessionHead]:
        """Heads, newest write first, at most `limit`; `after` is (updated_ms, agent, session) of
        the last one seen."""
        return await self._connections.read(
            reads.list_sessions, tenant, agent, session_key, limit, after
        )

    async def agent_sessions(
        self,
        tenant: str,
        agent: str,
        *,
        session_key: str = "",
        limit: int,
        after: tuple[int, str] | None = None,
    ) -> list[SessionHead]:
        """Heads of an agent's sessions, or of one key's, the one made last first."""
        return await self._connections.read(
            reads.agent_sessions, tenant, agent, session_key, limit, after
        )

    async def idle_sessions(self, before_ms: int, limit: int) -> list[SessionHead]:
        """Sessions that did not end and were last written before a time, oldest first."""
        return await self._connections.read(reads.idle_sessions, before_ms, limit)

    async def staged(self, before_ms: int, limit: int) -> list[SessionHead]:
        """Heads of staged sessions to which nothing was added since a time."""
        return await self._connections.read(reads.staged, before_ms, limit)

    async def tenants(self) -> list[str]:
        """The tenants that have sessions, in order."""
        return await self._connections.read(reads.tenants)

    async def dependents(self, scope: Scope) -> list[Scope]:
        """Sessions that stand on this one directly."""
        return await self._connections.read(reads.dependents, scope)

    async def counts(self, tenant: str | None = None) -> dict[str, int]:
        """Rows by kind: sessions, messages, summaries, debts; of a tenant or of all."""
        return await self._connections.read(reads.counts, tenant)
