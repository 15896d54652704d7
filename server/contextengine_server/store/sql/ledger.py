"""Statements about what agents spent."""

from __future__ import annotations

from .clauses import insert, select
from .columns import COSTS, SPENT
from .dialect import Dialect

_MOST = 2**62
"""Sums stop here, so that one more charge, of at most 2^53, leaves them whole numbers."""


class LedgerStatements:
    """Tokens by the time when they were spent, and costs by model."""

    def __init__(self, dialect: Dialect) -> None:
        def added(table: str, column: str) -> str:
            total = f"{table}.{column} + excluded.{column}"
            bounded = f"{dialect.greatest}({-_MOST}, {dialect.least}({_MOST}, {total}))"
            return f"{column} = {bounded}"

        of_agent = "tenant = :tenant AND agent = :agent"
        self.spent = f"{select('spending', SPENT)} WHERE {of_agent} ORDER BY slot"
        self.spend = (
            insert("spending", ("tenant", "agent", "slot", *SPENT))
            + " ON CONFLICT (tenant, agent, slot) DO UPDATE SET last_ms ="
            f" {dialect.greatest}(spending.last_ms, excluded.last_ms),"
            f" {added('spending', 'tokens')}"
        )
        self.forget = f"DELETE FROM spending WHERE {of_agent} AND slot < :slot"
        self.costs = (
            f"{select('costs', COSTS)} WHERE tenant = :tenant ORDER BY agent, provider, model"
        )
        of_model = ", ".join(dialect.hashed.format(name) for name in ("provider", "model"))
        sums = ", ".join(added("costs", column) for column in COSTS[3:])
        self.add = (
            insert("costs", ("tenant", *COSTS))
            + f" ON CONFLICT (tenant, agent, {of_model}) DO UPDATE SET {sums}"
        )
