"""The work that waits in the SQLite store, and what operators chose."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from contextengine_server.context.scope import Scope
from contextengine_server.store.debts import Debt
from contextengine_server.store.rows import Assignment, Workload

from . import reads, writes
from .index import Run
from .statements import SQL

T = TypeVar("T")


class SqliteWorkloads:
    """`Workloads` over the tables. `read` runs work on a reading connection."""

    def __init__(self, read: Run, queued: Callable[[], int]) -> None:
        self._read = read
        self.queued = queued

    async def now(self, now_ms: int) -> Workload:
        """What waits and what runs."""
        return await self._read(_workload, now_ms)


def _workload(db: sqlite3.Connection, now_ms: int) -> Workload:
    waiting, running, held, oldest = db.execute(SQL.workload.debts, {"now": now_ms}).fetchone()
    return Workload(
        debts_waiting=waiting,
        debts_running=running,
        debts_held=held,
        oldest_ms=oldest,
        jobs_open=int(db.execute(SQL.workload.jobs).fetchone()[0]),
        guards=tuple(state for (state,) in db.execute(SQL.workload.guards)),
    )


class SqliteDebts(ABC):
    """`Debts`, and what operators chose."""

    @abstractmethod
    async def _read(self, read: Callable[..., T], *args: Any) -> T:
        """What `read` finds with a connection of the store's."""

    @abstractmethod
    async def _write(
        self,
        work: Callable[[sqlite3.Connection], T],
        then: Callable[[T], None] = lambda result: None,
        *,
        tenant: str = "",
    ) -> T:
        """What `work` does on the connection that writes, when it is the tenant's turn."""

    async def add_debt(self, debt: Debt) -> None:
        """Records background work outside a commit, unless its kind is owed already."""
        await self._write(lambda db: writes.add_debt(db, debt), tenant=debt.scope.tenant)

    async def debts(self, scope: Scope) -> list[Debt]:
        """What a session owes, oldest first."""
        return await self._read(reads.debts, scope)

    async def debtors(self, now_ms: int) -> list[str]:
        """The tenants with a debt that is due, who has waited longest first."""
        return await self._read(reads.debtors, now_ms)

    async def claim_debt(
        self, owner: str, now_ms: int, lease_ms: int, *, tenant: str = ""
    ) -> Debt | None:
        """Leases the oldest debt that is due, neither held nor under a live lease. One job at a
        time per session."""
        return await self._write(
            lambda db: writes.claim_debt(db, owner, now_ms, lease_ms, tenant), tenant=tenant
        )

    async def extend_debt(self, debt: Debt, until_ms: int) -> bool:
        """Extends a lease; False where it was lost."""
        return await self._write(
            lambda db: writes.extend_debt(db, debt, until_ms), tenant=debt.scope.tenant
        )

    async def release_debt(
        self, debt: Debt, *, done: bool, not_before_ms: int = 0, error: str = "", held: bool = False
    ) -> None:
        """Ends a lease: removes the debt, or puts it back for later. Does nothing where the lease
        was lost."""
        await self._write(
            lambda db: writes.release_debt(db, debt, done, not_before_ms, error, held),
            tenant=debt.scope.tenant,
        )

    # Operators

    async def assignments(self, tenant: str | None) -> list[Assignment]:
        """What operators chose within a tenant, or within all."""
        return await self._read(reads.assignments, tenant)

    async def assign(self, assignment: Assignment) -> None:
        """Records a choice; one with no engine and no options removes it."""
        await self._write(lambda db: writes.assign(db, assignment), tenant=assignment.tenant)
