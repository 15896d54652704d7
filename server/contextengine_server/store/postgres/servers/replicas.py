"""What servers over one PostgreSQL database tell each other, and which of them does what one alone
should. Neither outlives a crash of the database: nothing is recorded in it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import asyncpg

from contextengine_server.context.scope import Scope
from contextengine_server.store.feed import Batch
from contextengine_server.store.sql.columns import KEY

from ..connections import FAILURES, Connections, Db
from ..guards import LOCK
from ..keys import number
from ..transactions import Transact

_ONE = number("contextengine", "feed")
"""Batches are added one after the other: who reads one has seen all before it."""
_CHANNEL = "contextengine_feed"
_NOW_MS = "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::bigint"
_POST = f"""
    WITH newest AS (
        SELECT COALESCE((SELECT number + notes - 1 FROM feed ORDER BY number DESC LIMIT 1), 0)
        AS last
    ), told AS (SELECT pg_notify('{_CHANNEL}', ''))
    INSERT INTO feed (number, previous, notes, body)
    SELECT GREATEST(last + 1, {_NOW_MS} * 1000), last, :notes::bigint, :body::bytea
    FROM newest, told
"""
_SINCE = """
    SELECT previous, number, notes, body FROM feed
    WHERE number >= COALESCE((SELECT MAX(number) FROM feed WHERE number <= :number), 0)
    AND number + notes - 1 > :number AND notes > 0 ORDER BY number LIMIT :limit
"""
_TRIM = f"""
    DELETE FROM feed WHERE number < ({_NOW_MS} - :keep_ms::bigint) * 1000
    AND number < (SELECT MAX(number) FROM feed)
"""
_EMPTY_THE_NEWEST = f"""
    UPDATE feed SET number = number + notes, notes = 0, body = ''
    WHERE number < ({_NOW_MS} - :keep_ms::bigint) * 1000 AND notes > 0
"""
"""How far the feed has come stays known where nothing is left of it."""

_HELD = (*KEY, "kind")
_TAKE = f"""
    INSERT INTO leases ({", ".join(_HELD)}, owner, until_ms)
    VALUES (:tenant, :agent, :session, :kind, :owner, {_NOW_MS} + :lease_ms::bigint)
    ON CONFLICT ({", ".join(_HELD)}) DO UPDATE SET owner = excluded.owner,
    until_ms = excluded.until_ms
    WHERE leases.owner = excluded.owner OR leases.until_ms <= {_NOW_MS}
"""
_GIVE_BACK = f"""
    DELETE FROM leases WHERE {" AND ".join(f"{name} = :{name}" for name in _HELD)}
    AND owner = :owner
"""
_OWNERS = f"""
    SELECT DISTINCT owner COLLATE "C" FROM leases WHERE kind = :kind AND until_ms > {_NOW_MS}
    ORDER BY 1
"""
_FORGOTTEN = f"DELETE FROM leases WHERE until_ms < {_NOW_MS} - 3600000"
"""Of servers that never came back for them."""


class PostgresFeed:
    """`Feed` in a table. Who waits is woken by a notice of the database, where it can give one."""

    def __init__(self, connections: Connections, write: Transact) -> None:
        self._connections, self._write = connections, write
        self._line: asyncpg.Connection | None = None
        self._woken = asyncio.Event()

    async def post(self, count: int, body: bytes) -> None:
        """Adds so many notes at once."""

        async def work(db: Db) -> None:
            await db.value(LOCK, {"number": _ONE})
            await db.met(_POST, {"notes": count, "body": body})

        await self._write(work)

    async def since(self, number: int, limit: int) -> Sequence[Batch]:
        """The oldest batches that end above a number, in order."""

        async def read(db: Db) -> list[Batch]:
            found = await db.rows(_SINCE, {"number": number, "limit": limit})
            return [Batch(*row) for row in found]

        return await self._connections.read(read)

    async def posted(self, seconds: float) -> None:
        """Waits for a notice, or this time."""
        if self._line is None or self._line.is_closed():
            with suppress(*FAILURES):
                self._line = await self._connections.connect()
                await self._line.add_listener(_CHANNEL, lambda *_: self._woken.set())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()

    async def trim(self, keep_ms: int) -> None:
        """Lets batches go that were posted longer ago."""

        async def work(db: Db) -> None:
            await db.value(LOCK, {"number": _ONE})
            await db.met(_TRIM, {"keep_ms": keep_ms})
            await db.met(_EMPTY_THE_NEWEST, {"keep_ms": keep_ms})

        await self._write(work)

    async def close(self) -> None:
        """Listens no more. Safe twice."""
        line, self._line = self._line, None
        if line is not None:
            with suppress(*FAILURES):
                await line.close(timeout=self._connections.options.wait_s)


class PostgresLeases:
    """`Leases` in a table, by the database's clock."""

    def __init__(self, connections: Connections, write: Transact) -> None:
        self._connections, self._write = connections, write

    async def take(self, scope: Scope, kind: str, owner: str, lease_ms: int) -> bool:
        """True where `owner` holds it from now on for so long."""
        names = {**scope._asdict(), "kind": kind, "owner": owner, "lease_ms": lease_ms}
        return await self._write(lambda db: db.met(_TAKE, names)) > 0

    async def give_back(self, scope: Scope, kind: str, owner: str) -> None:
        """It is free."""

        async def work(db: Db) -> None:
            await db.met(_GIVE_BACK, {**scope._asdict(), "kind": kind, "owner": owner})
            await db.met(_FORGOTTEN)

        await self._write(work)

    async def owners(self, kind: str) -> Sequence[str]:
        """Who holds leases of a kind now."""

        async def read(db: Db) -> list[str]:
            return [row[0] for row in await db.rows(_OWNERS, {"kind": kind})]

        return await self._connections.read(read)
