"""What agents remember, in the SQLite store."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from contextengine_server.context.scope import Scope
from contextengine_server.store.agent_facts import AgentFact, FoundInSession
from contextengine_server.store.sql import columns
from contextengine_server.store.sql.columns import named

from .. import reads
from ..index import Run, Write
from ..statements import SQL


class SqliteAgentFacts:
    """`AgentMemory` in a table. `read` and `write` run work on a connection of their kind."""

    def __init__(self, read: Run, write: Write) -> None:
        self._read, self._write = read, write

    async def add(self, found: FoundInSession) -> int:
        """Writes facts of a session; answers how many are new."""
        return await self._write(lambda db: _add(db, found), tenant=found.scope.tenant)

    async def facts(self, tenant: str, agent: str) -> list[AgentFact]:
        """All of an agent's, oldest first."""
        names = {"tenant": tenant, "agent": agent}
        return await self._read(lambda db: columns.facts(db.execute(SQL.memory.of_agent, names)))

    async def newest_facts(
        self, tenant: str, agent: str, kinds: Sequence[str], *, as_of_ms: int, limit: int
    ) -> list[AgentFact]:
        """Those of these kinds that were written by then, newest first."""
        names = {
            "tenant": tenant,
            "agent": agent,
            "kinds": json.dumps(kinds),
            "as_of_ms": as_of_ms,
            "limit": limit,
        }
        return await self._read(lambda db: columns.facts(db.execute(SQL.memory.newest, names)))

    async def facts_of(self, scope: Scope) -> list[AgentFact]:
        """Those that were found in a session, oldest first."""
        names = named(scope)
        return await self._read(lambda db: columns.facts(db.execute(SQL.memory.of_session, names)))


def _add(db: sqlite3.Connection, found: FoundInSession) -> int:
    head = reads.head(db, found.scope)
    if head is None or head.incarnation != found.incarnation:
        return 0
    of_session = named(found.scope)
    for id in found.forgotten:
        db.execute(SQL.memory.forget, {**of_session, "id": id})
    rows = db.execute(SQL.memory.retired, {**of_session, "as_of": found.as_of})
    retired = {row[0] for row in rows}
    return sum(
        db.execute(SQL.memory.insert, columns.fact_values(fact)).rowcount
        for fact in found.facts
        if fact.sequence not in retired
    )
