"""A database of PostgreSQL as what is copied from, or into."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import Any

import asyncpg

from contextengine_server.context.scope import Scope
from contextengine_server.store.errors import StoreRefused
from contextengine_server.store.postgres import options
from contextengine_server.store.postgres.connections import FAILURES
from contextengine_server.store.postgres.keys import home, life, number
from contextengine_server.store.postgres.migrations import TABLES
from contextengine_server.store.postgres.schema import metadata
from contextengine_server.store.postgres.texts import read, written
from contextengine_server.store.sql.columns import KEY
from contextengine_server.store.transfer import tables
from contextengine_server.store.transfer.side import Key, Lives
from contextengine_server.store.transfer.tables import HEADS, Row

_PAGE = 200
_NOTES = "store_copy"
_NAME = "contextengine-copy"
_ONE = number("contextengine", "copy")
_SERVERS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND application_name LIKE 'contextengine %'"
)
_MAKE = f"CREATE TABLE IF NOT EXISTS {_NOTES} (part text PRIMARY KEY, mark text NOT NULL)"
_NOTE = f"""
    INSERT INTO {_NOTES} VALUES ($1, $2) ON CONFLICT (part) DO UPDATE SET mark = excluded.mark
"""


@asynccontextmanager
async def source(url: str) -> AsyncIterator[PostgresSide]:
    """The database as it is now, which servers may go on writing to. Raises StoreRefused."""
    async with (
        _side(url) as side,
        side.raw.transaction(isolation="repeatable_read", readonly=True),
    ):
        yield side


@asynccontextmanager
async def target(url: str) -> AsyncIterator[PostgresSide]:
    """The database, which has the present schema and no server uses. Raises StoreRefused."""
    place = options.place(url)
    async with _side(url) as side:
        if await side.raw.fetchval(_SERVERS):
            raise StoreRefused(f"{place} is in use by a server: stop it first")
        if not await side.raw.fetchval("SELECT pg_try_advisory_lock($1)", _ONE):
            raise StoreRefused(f"{place} is being copied into already: wait for that")
        await side.raw.execute(_MAKE)
        yield side


@asynccontextmanager
async def _side(url: str) -> AsyncIterator[PostgresSide]:
    parsed, place = options.parse(url), options.place(url)
    try:
        raw = await asyncpg.connect(
            parsed.dsn, timeout=parsed.wait_s, server_settings={"application_name": _NAME}
        )
        try:
            yield PostgresSide(raw)
        finally:
            with suppress(*FAILURES):
                await raw.close(timeout=parsed.wait_s)
    except FAILURES as error:
        raise StoreRefused(f"{place} cannot be copied: {error}") from error


class PostgresSide:
    """See `store.transfer.side`."""

    def __init__(self, raw: asyncpg.Connection) -> None:
        self.raw = raw

    async def heads(self) -> AsyncIterator[list[Row]]:
        """See CopySource."""
        async for page in self._pages(HEADS, "WHERE revision > 0 ORDER BY home"):
            yield [row for _, row in page]

    async def head(self, key: Key) -> Row | None:
        """See CopySource."""
        condition = "WHERE home = $1 AND tenant = $2 AND agent = $3 AND session = $4"
        given = (home(Scope(*key)), *map(written, key))
        statement = f"SELECT {_names(HEADS)} FROM {HEADS} {condition} AND revision > 0"
        row = await self.raw.fetchrow(statement, *given)
        return None if row is None else tuple(map(_read, row))

    async def rows(self, table: str, lives: Lives | None) -> AsyncIterator[list[Row]]:
        """See CopySource."""
        order = ", ".join(name for name in tables.order(table) if name in _own(table))
        if lives is None:
            async for page in self._pages(table, f"ORDER BY {order}"):
                yield [row for _, row in page]
            return
        keys = {life(Scope(*key), one): key for key, one in lives.items()}
        homes = [home(Scope(*key)) for key in lives]
        condition = "WHERE home = ANY($1) AND life = ANY($2)"
        named = table == HEADS
        async for page in self._pages(
            table, f"{condition} ORDER BY home, life, {order}", homes, list(keys)
        ):
            yield [row if named else (*keys[one], *row) for one, row in page]

    async def _pages(
        self, table: str, condition: str, *given: Any
    ) -> AsyncIterator[list[tuple[Any, Row]]]:
        """Rows of the columns that the table has of the shared one, each after its life."""
        named = "life" if "life" in _own(table) else "NULL"
        statement = f"SELECT {named}, {_names(table)} FROM {table} {condition}"
        async with nullcontext() if self.raw.is_in_transaction() else self.raw.transaction():
            cursor = await self.raw.cursor(statement, *given)
            while page := await cursor.fetch(_PAGE):
                yield [(row[0], tuple(map(_read, row[1:]))) for row in map(tuple, page)]

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """See CopyTarget."""
        async with self.raw.transaction():
            yield

    async def erase(self, table: str, lives: Lives | None) -> None:
        """See CopyTarget."""
        if lives is None:
            await self.raw.execute(f"DELETE FROM {table}")
            return
        homes = [home(Scope(*key)) for key in lives]
        if table == HEADS:
            keys = ([written(key[at]) for key in lives] for at in range(len(KEY)))
            await self.raw.execute(
                f"DELETE FROM {table}"
                " USING unnest($1::bigint[], $2::text[], $3::text[], $4::text[])"
                " AS gone (home, tenant, agent, session)"
                " WHERE (sessions.home, sessions.tenant, sessions.agent, sessions.session)"
                " = (gone.home, gone.tenant, gone.agent, gone.session)",
                homes,
                *keys,
            )
            return
        ended = [life(Scope(*key), one) for key, one in lives.items()]
        condition = "WHERE home = ANY($1) AND life = ANY($2)"
        await self.raw.execute(f"DELETE FROM {table} {condition}", homes, ended)

    async def insert(self, table: str, rows: Sequence[Row], lives: Lives) -> None:
        """See CopyTarget."""
        own, shared = _own(table), tables.columns(table)
        kept = [at for at, name in enumerate(shared) if name in own]
        extra = [name for name in ("home", "life") if name in own]
        at_key = [shared.index(name) for name in KEY] if extra else []

        def made(row: Row) -> tuple[Any, ...]:
            scope = Scope(*(row[at] for at in at_key)) if extra else None
            values: list[Any] = []
            if scope is not None:
                values.append(home(scope))
                if "life" in own:
                    values.append(life(scope, lives[scope.tenant, scope.agent, scope.session]))
            return (*values, *(_written(row[at]) for at in kept))

        await self.raw.copy_records_to_table(
            table, records=map(made, rows), columns=[*extra, *(shared[at] for at in kept)]
        )

    async def empty(self) -> None:
        """See CopyTarget."""
        for table in (*TABLES, _NOTES):
            await self.raw.execute(f"DELETE FROM {table}")

    async def forget(self, lives: Lives) -> None:
        """See CopyTarget."""
        for table in ("passages", "search_cursors"):
            await self.erase(table, lives)

    async def mark(self, part: str) -> str:
        """See CopyTarget."""
        found = await self.raw.fetchval(f"SELECT mark FROM {_NOTES} WHERE part = $1", part)
        return "" if found is None else str(found)

    async def note(self, part: str, mark: str) -> None:
        """See CopyTarget."""
        if mark:
            await self.raw.execute(_NOTE, part, mark)
        else:
            await self.raw.execute(f"DELETE FROM {_NOTES} WHERE part = $1", part)


def _names(table: str) -> str:
    own = _own(table)
    return ", ".join(f'"{name}"' for name in tables.columns(table) if name in own)


def _own(table: str) -> set[str]:
    return set(metadata.tables[table].c.keys())


def _read(value: Any) -> Any:
    return read(value) if isinstance(value, str) else value


def _written(value: Any) -> Any:
    return written(value) if isinstance(value, str) else value
