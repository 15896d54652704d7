"""What agents spent, in the SQLite store."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from contextengine_server.context.scope import Scope
from contextengine_server.store.charges import SLOT_MS, SPENT_MS, Charge, Spent
from contextengine_server.store.rows import Costs
from contextengine_server.store.sql import columns

from ..index import Run
from ..statements import SQL


class SqliteLedger:
    """`SpendLedger` in two tables. `read` runs work on a reading connection."""

    def __init__(self, read: Run) -> None:
        self._read = read

    async def spent(self, tenant: str, agent: str) -> Sequence[Spent]:
        """What an agent spent within the last day or a little more, oldest first."""

        def read(db: sqlite3.Connection) -> list[Spent]:
            return columns.spent(db.execute(SQL.ledger.spent, {"tenant": tenant, "agent": agent}))

        return await self._read(read)

    async def costs(self, tenant: str) -> Sequence[Costs]:
        """What the calls of a tenant's agents took."""

        def read(db: sqlite3.Connection) -> list[Costs]:
            return columns.costs(db.execute(SQL.ledger.costs, {"tenant": tenant}))

        return await self._read(read)


def charge(db: sqlite3.Connection, scope: Scope, charged: Charge) -> None:
    """Adds a charge, within the transaction of its commit; what is older than a day goes."""
    oldest = (charged.time_ms - SPENT_MS) // SLOT_MS
    names = {"tenant": scope.tenant, "agent": scope.agent, "slot": oldest}
    db.execute(SQL.ledger.forget, names)
    db.execute(SQL.ledger.spend, columns.spent_values(scope, charged))
    db.execute(SQL.ledger.add, columns.costs_values(scope, charged))
