"""What the PostgreSQL store keeps of each tenant: its guards' state, and the quota set for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from .connections import Connections, Db
from .keys import number
from .statements import SQL
from .transactions import Transact

T = TypeVar("T")


class PostgresGuards:
    """`Guards` in a table. `write` runs work in a transaction."""

    def __init__(self, connections: Connections, write: Transact) -> None:
        self._connections, self._write = connections, write

    async def state(self, tenant: str) -> bytes:
        """The tenant's state; empty where none was ever written."""
        return await self._connections.read(_state, tenant)

    async def change(self, tenant: str, step: Callable[[bytes], tuple[bytes, T]]) -> T:
        """Replaces the tenant's state by the first that `step` gives for it, and answers the
        second."""

        async def work(db: Db) -> T:
            # A row that is not there yet cannot be locked.
            await db.value(LOCK, {"number": number("guards", tenant)})
            before = await _state(db, tenant)
            after, answer = step(before)
            if after != before:
                await db.met(SQL.guards.change, (tenant, after))
            return answer

        return await self._write(work)


class PostgresQuotas:
    """`TenantRows` in a table, as `PostgresGuards`."""

    def __init__(self, connections: Connections, write: Transact) -> None:
        self._connections, self._write = connections, write

    async def rows(self) -> Mapping[str, bytes]:
        """Every quota, by tenant."""

        async def read(db: Db) -> dict[str, bytes]:
            return {row[0]: row[1] for row in await db.rows(SQL.quotas.all)}

        return await self._connections.read(read)

    async def put(self, tenant: str, quota: bytes) -> None:
        """Replaces the tenant's quota; empty: removes it."""
        if quota:
            await self._write(lambda db: db.met(SQL.quotas.set, (tenant, quota)))
        else:
            await self._write(lambda db: db.met(SQL.quotas.unset, {"tenant": tenant}))


LOCK = "SELECT pg_advisory_xact_lock(:number)"
"""Whoever locks the same number waits until the transaction ends."""


async def _state(db: Db, tenant: str) -> bytes:
    found: bytes | None = await db.value(SQL.guards.state, {"tenant": tenant})
    return found or b""
