"""What the SQLite store keeps of each tenant: its guards' state, and the quota set for it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from typing import TypeVar

from .index import Run, Write
from .statements import SQL

T = TypeVar("T")


class SqliteGuards:
    """`Guards` in a table. `read` and `write` run work on a reading connection and on the one that
    writes."""

    def __init__(self, read: Run, write: Write) -> None:
        self._read, self._write = read, write

    async def state(self, tenant: str) -> bytes:
        """The tenant's state; empty where none was ever written."""
        return await self._read(_state, tenant)

    async def change(self, tenant: str, step: Callable[[bytes], tuple[bytes, T]]) -> T:
        """Replaces the tenant's state by the first that `step` gives for it, and answers the
        second."""

        def work(db: sqlite3.Connection) -> T:
            before = _state(db, tenant)
            after, answer = step(before)
            if after != before:
                db.execute(SQL.guards.change, (tenant, after))
            return answer

        return await self._write(work, tenant=tenant)


class SqliteQuotas:
    """`TenantRows` in a table, as `SqliteGuards`."""

    def __init__(self, read: Run, write: Write) -> None:
        self._read, self._write = read, write

    async def rows(self) -> Mapping[str, bytes]:
        """Every quota, by tenant."""
        return await self._read(lambda db: dict(db.execute(SQL.quotas.all)))

    async def put(self, tenant: str, quota: bytes) -> None:
        """Replaces the tenant's quota; empty: removes it."""

        def work(db: sqlite3.Connection) -> None:
            if quota:
                db.execute(SQL.quotas.set, (tenant, quota))
            else:
                db.execute(SQL.quotas.unset, {"tenant": tenant})

        await self._write(work, tenant=tenant)


def _state(db: sqlite3.Connection, tenant: str) -> bytes:
    found = db.execute(SQL.guards.state, {"tenant": tenant}).fetchone()
    return b"" if found is None else found[0]
