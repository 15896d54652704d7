"""What agents remember, in the PostgreSQL store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from contextengine_server.context.scope import Scope
from contextengine_server.store.agent_facts import AgentFact, FoundInSession
from contextengine_server.store.sql import columns

from .. import reads
from ..connections import Connections, Db
from ..keys import named
from ..statements import LOCK_TO_READ, SQL
from ..transactions import Transact


class PostgresAgentFacts:
    """`AgentMemory` in a table. `write` runs work in a transaction."""

    def __init__(self, connections: Connections, write: Transact) -> None:
        self._connections, self._write = connections, write

    async def add(self, found: FoundInSession) -> int:
        """Writes facts of a session; answers how many are new."""
        return await self._write(lambda db: _add(db, found))

    async def facts(self, tenant: str, agent: str) -> list[AgentFact]:
        """All of an agent's, oldest first."""
        return await self._read(SQL.memory.of_agent, {"tenant": tenant, "agent": agent})

    async def newest_facts(
        self, tenant: str, agent: str, kinds: Sequence[str], *, as_of_ms: int, limit: int
    ) -> list[AgentFact]:
        """Those of these kinds that were written by then, newest first."""
        names = {
            "tenant": tenant,
            "agent": agent,
            "kinds": list(kinds),
            "as_of_ms": as_of_ms,
            "limit": limit,
        }
        return await self._read(SQL.memory.newest, names)

    async def facts_of(self, scope: Scope) -> list[AgentFact]:
        """Those that were found in a session, oldest first."""
        return await self._read(SQL.memory.of_session, named(scope))

    async def _read(self, statement: str, names: dict[str, Any]) -> list[AgentFact]:
        async def read(db: Db) -> list[AgentFact]:
            return columns.facts(await db.rows(statement, names))

        return await self._connections.read(read)


async def _add(db: Db, found: FoundInSession) -> int:
    # Who retires messages waits until these facts are there to be taken back, or came first.
    head = await reads.head(db, found.scope, LOCK_TO_READ)
    if head is None or head.incarnation != found.incarnation:
        return 0
    of_session = named(found.scope)
    for id in found.forgotten:
        await db.met(SQL.memory.forget, {**of_session, "id": id})
    rows = await db.rows(SQL.memory.retired, {**of_session, "as_of": found.as_of})
    retired = {row[0] for row in rows}
    return sum(
        [
            await db.met(SQL.memory.insert, columns.fact_values(fact))
            for fact in found.facts
            if fact.sequence not in retired
        ]
    )
