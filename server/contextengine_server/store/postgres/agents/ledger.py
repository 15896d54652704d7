"""What agents spent, in the PostgreSQL store."""

from __future__ import annotations

from collections.abc import Sequence

from contextengine_server.store.charges import Spent
from contextengine_server.store.rows import Costs
from contextengine_server.store.sql import columns

from ..connections import Connections, Db
from ..statements import SQL


class PostgresLedger:
    """`SpendLedger` in two tables."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def spent(self, tenant: str, agent: str) -> Sequence[Spent]:
        """What an agent spent within the last day or a little more, oldest first."""

        async def read(db: Db) -> list[Spent]:
            names = {"tenant": tenant, "agent": agent}
            return columns.spent(await db.rows(SQL.ledger.spent, names))

        return await self._connections.read(read)

    async def costs(self, tenant: str) -> Sequence[Costs]:
        """What the calls of a tenant's agents took."""

        async def read(db: Db) -> list[Costs]:
            return columns.costs(await db.rows(SQL.ledger.costs, {"tenant": tenant}))

        return await self._connections.read(read)
