"""The database: whether it is ours, what schema it has, and how it gets the present one."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import asyncpg

from contextengine_server.store.errors import StoreRefused

from .connections import FAILURES, Connections, Db
from .keys import number
from .migrations import HEAD, MARK, REVISIONS, TABLES, script

_ALL_TABLES = """
    SELECT relname FROM pg_class WHERE relkind IN ('r', 'p')
    AND relnamespace = current_schema()::regnamespace
"""
_REVISION = "SELECT version_num FROM alembic_version"
_SERVES = "SELECT obj_description('alembic_version'::regclass, 'pg_class')"
_PATIENCE = "SET LOCAL lock_timeout = '{}s'"
_POOLER = "unsupported startup parameter"
"""What PgBouncer says to settings of a connection."""
_LOCK = "SELECT pg_advisory_xact_lock($1)"
_TURN_S = 600
"""How long one waits while another brings the schema up."""
_STEP_S = 10
"""How long a step waits for a table that calls use. Longer, and they would queue up behind it."""
_ONE = number("contextengine", "migrations")
"""Servers that start at once bring the schema up one after the other."""
_FACTS = """
    SELECT current_setting('server_version') AS server,
    pg_database_size(current_database())::text AS bytes,
    current_setting('synchronous_commit') AS synchronous_commit
"""


async def prepare(connections: Connections, place: str) -> None:
    """Makes the tables where there are none and brings them to the present schema, in one
    transaction. Raises StoreRefused."""
    raw = await reached(connections, place)
    try:
        if not done(await revision(raw, place)):
            async with raw.transaction():
                await raw.execute(_PATIENCE.format(_TURN_S))
                await raw.execute(_LOCK, _ONE)
                await raw.execute(_PATIENCE.format(_STEP_S))
                found = await revision(raw, place)
                if not done(found):
                    await raw.execute(script(found))
    except asyncpg.LockNotAvailableError:
        raise StoreRefused(
            f"{place} is not upgraded, and as it was: a table was in use for {_STEP_S} s, or"
            f" another server has been upgrading for {_TURN_S} s. Try again; a long"
            " transaction or a backup of the database may hold it"
        ) from None
    except FAILURES as error:
        raise StoreRefused(f"{place} cannot be opened: {_said(error)}") from None
    finally:
        with suppress(*FAILURES):
            await raw.close(timeout=connections.options.wait_s)


async def reached(connections: Connections, place: str) -> asyncpg.Connection:
    """A connection to the database. Raises StoreRefused where there is none to be had."""
    try:
        return await connections.connect()
    except asyncpg.InvalidCatalogNameError:
        name = place.rpartition("/")[2]
        raise StoreRefused(f"{place} is not there: make it (createdb {name})") from None
    except FAILURES as error:
        if _POOLER in str(error):
            raise StoreRefused(
                f"{place} is behind a pooler that lends connections for a transaction"
                f" ({_said(error)}): add prepared=false to store.url"
            ) from None
        raise StoreRefused(
            f"{place} cannot be reached ({_said(error)}): see that the database runs, and that the"
            " URL's host, user and password are right"
        ) from None


async def revision(raw: asyncpg.Connection, place: str) -> str | None:
    """The schema's revision; None for a database without tables. It may be newer than all that
    this program knows, where the database says that it serves us. Raises StoreRefused where it is
    not ours, or does not."""
    tables = {row[0] for row in await raw.fetch(_ALL_TABLES)}
    if not tables & {*TABLES, "alembic_version"}:
        return None
    if "alembic_version" not in tables or "sessions" not in tables:
        raise StoreRefused(f"{place} is a database of another program: name another one")
    found: list[str] = [row[0] for row in await raw.fetch(_REVISION)]
    known = len(found) == 1 and found[0] in REVISIONS
    if not known and not (len(found) == 1 and await _serves(raw) in REVISIONS):
        raise StoreRefused(
            f"{place} has schema {', '.join(found) or 'none'}, and this program knows none newer"
            f" than {HEAD}: run the newer version that wrote it, or restore a backup made before"
            " the upgrade"
        )
    return found[0]


def done(found: str | None) -> bool:
    """Whether a revision needs no step: it is the present one, or a newer one that serves us."""
    return found == HEAD or (found is not None and found not in REVISIONS)


async def _serves(raw: asyncpg.Connection) -> str:
    """The oldest revision whose programs may work on it, as the database says itself."""
    said: str | None = await raw.fetchval(_SERVES)
    return said.removeprefix(MARK) if said and said.startswith(MARK) else ""


async def facts(db: Db) -> dict[str, str]:
    """What the database says of itself."""
    row = await db.row(_FACTS)
    assert row is not None
    return dict(row)


async def touch(db: Db) -> None:
    """Writes a row as it is."""
    await db.met("UPDATE alembic_version SET version_num = version_num")


async def vacuum(db: Db) -> None:
    """Takes dead rows out of our tables, and counts them for the planner. Outside a
    transaction."""
    for table in TABLES:
        await db.raw.execute(f"VACUUM (ANALYZE) {table}", timeout=None)


def _said(error: BaseException) -> str:
    if isinstance(error, TimeoutError | asyncio.TimeoutError):
        return "it did not answer in time"
    return str(error).partition("\n")[0] or type(error).__name__
