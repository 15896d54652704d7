"""The work that waits in the PostgreSQL store, and what operators chose."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.debts import Debt
from contextengine_server.store.rows import Assignment, Workload
from contextengine_server.store.sql import columns
from contextengine_server.store.sql.columns import debt_values

from . import reads, writes
from .connections import Connections, Db
from .keys import home, named
from .statements import SQL

T = TypeVar("T")

_TRIES = 4
"""Debts that are looked at in one claim: others may be claimed by others at this moment."""


class PostgresWorkloads:
    """`Workloads` over the tables."""

    def __init__(self, connections: Connections, queued: Callable[[], int]) -> None:
        self._connections = connections
        self.queued = queued

    async def now(self, now_ms: int) -> Workload:
        """What waits and what runs."""
        return await self._connections.read(_workload, now_ms)


async def _workload(db: Db, now_ms: int) -> Workload:
    found = await db.row(SQL.workload.debts, {"now": now_ms})
    assert found is not None
    waiting, running, held, oldest = found
    return Workload(
        debts_waiting=waiting,
        debts_running=running,
        debts_held=held,
        oldest_ms=oldest,
        jobs_open=await db.value(SQL.workload.jobs),
        guards=tuple(state for (state,) in await db.rows(SQL.workload.guards)),
    )


class PostgresDebts(ABC):
    """`Debts`, and what operators chose."""

    _connections: Connections

    @abstractmethod
    async def _write(
        self, work: Callable[[Db], Awaitable[T]], then: Callable[[T], None] = lambda result: None
    ) -> T:
        """What `work` does in a transaction."""

    async def add_debt(self, debt: Debt) -> None:
        """Records background work outside a commit, unless its kind is owed already."""
        row = (*debt.scope, *debt_values(debt))
        await self._write(lambda db: db.met(SQL.debts.add, row))

    async def debts(self, scope: Scope) -> list[Debt]:
        """What a session owes, oldest first."""
        return await self._connections.read(reads.debts, scope)

    async def debtors(self, now_ms: int) -> list[str]:
        """The tenants with a debt that is due, who has waited longest first."""
        return await self._connections.read(reads.debtors, now_ms)

    async def claim_debt(
        self, owner: str, now_ms: int, lease_ms: int, *, tenant: str = ""
    ) -> Debt | None:
        """Leases the oldest debt that is due, neither held nor under a live lease. One job at a
        time per session."""
        for _ in range(_TRIES):
            claimed = await self._write(lambda db: _claim(db, owner, now_ms, lease_ms, tenant))
            if not isinstance(claimed, bool):
                return claimed
        return None

    async def extend_debt(self, debt: Debt, until_ms: int) -> bool:
        """Extends a lease; False where it was lost."""
        names = _lease(debt, until=until_ms)
        return await self._write(lambda db: db.met(SQL.debts.extend, names)) > 0

    async def release_debt(
        self, debt: Debt, *, done: bool, not_before_ms: int = 0, error: str = "", held: bool = False
    ) -> None:
        """Ends a lease: removes the debt, or puts it back for later. Does nothing where the lease
        was lost."""
        if done:
            await self._write(lambda db: db.met(SQL.debts.finish, _lease(debt)))
        else:
            names = _lease(debt, not_before=not_before_ms, error=error, hold=held)
            await self._write(lambda db: db.met(SQL.debts.put_back, names))

    # Operators

    async def assignments(self, tenant: str | None) -> list[Assignment]:
        """What operators chose within a tenant, or within all."""
        return await self._connections.read(reads.assignments, tenant)

    async def assign(self, assignment: Assignment) -> None:
        """Records a choice; one with no engine and no options removes it."""
        await self._write(lambda db: writes.assign(db, assignment))


async def _claim(db: Db, owner: str, now_ms: int, lease_ms: int, tenant: str) -> Debt | bool | None:
    """The oldest debt that is due and nobody else claims at this moment; None: there is none.
    False: another of its session was claimed since, so it is to be looked for again.

    Two debts of one session are two rows, so their claims must meet at something else: a lock on
    the number of the session, under which it is looked again whether one of them is under a lease.
    """
    names = {"now": now_ms, "tenant": tenant}
    found = columns.debts(await db.rows(f"{SQL.debts.due} FOR UPDATE SKIP LOCKED", names))
    if not found:
        return None
    debt = found[0]
    if not await db.value("SELECT pg_try_advisory_xact_lock(:home)", {"home": home(debt.scope)}):
        return False
    if any(one.leased(now_ms) for one in await reads.debts(db, debt.scope)):
        return False
    until = now_ms + lease_ms
    await db.met(SQL.debts.lease, named(debt.scope, kind=debt.kind, owner=owner, until=until))
    return replace(debt, lease_owner=owner, lease_until_ms=until, attempts=debt.attempts + 1)


def _lease(debt: Debt, **more: Any) -> dict[str, Any]:
    return named(
        debt.scope,
        kind=debt.kind,
        lease_owner=debt.lease_owner,
        attempts=debt.attempts,
        queued_ms=debt.queued_ms,
        **more,
    )
