"""A store's tie to its tables."""

from __future__ import annotations

import time

from contextengine_server.context.scope import Scope
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.rows import StoreHealth

from .tables import SessionTables, Tables


class MemoryConnection:
    """`Connection` to tables that are there already."""

    def __init__(self, tables: Tables) -> None:
        self._rows = tables
        self._is_open = False

    def _tables(self) -> Tables:
        if not self._is_open:
            raise StoreUnavailable("the store is closed")
        return self._rows

    def _session(self, scope: Scope) -> SessionTables | None:
        tables = self._tables()
        return tables.sessions.get(scope) or tables.staged.get(scope)

    async def open(self) -> None:
        """Makes the rows answerable."""
        self._is_open = True

    async def close(self) -> None:
        """Answers nothing from now on. Safe twice."""
        self._is_open = False

    def clock_ms(self) -> int:
        """This machine's clock."""
        return time.time_ns() // 1_000_000

    async def probe(self) -> None:
        """Memory can be written while the store is open."""
        self._tables()

    async def vacuum(self) -> None:
        """Python gives back what it can."""
        self._tables()

    async def health(self) -> StoreHealth:
        """How the store is."""
        if not self._is_open:
            return StoreHealth(False, "closed")
        facts = {"sessions": str(len(self._rows.sessions))}
        return StoreHealth(True, "open, in memory: nothing survives a restart", facts)
