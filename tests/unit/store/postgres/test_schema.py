"""The migrations end in the tables, these hold what the shared ones hold, and what a call looks up
it finds by an index."""

from __future__ import annotations

import re
from typing import Any

import asyncpg
import pytest
from alembic.script import ScriptDirectory
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from contextengine_server.store.postgres import migrations, schema, statements
from contextengine_server.store.postgres.connections import SETTINGS, Db, numbered
from contextengine_server.store.postgres.statements import SQL
from contextengine_server.store.sql import schema as shared
from contextengine_server.store.sql.columns import KEY
from tests import postgres
from tests.unit.store.test_schema import every_statement

EVERY = {
    **dict(every_statement(SQL)),
    **{
        name: value
        for name, value in vars(statements).items()
        if name.isupper()
        and isinstance(value, str)
        and re.match(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b", value)
    },
    **{f"DELETE_INDEX {at}": text for at, text in enumerate(statements.DELETE_INDEX)},
}


@pytest.fixture
def url(tmp_path: Any) -> str:
    postgres.require()
    return postgres.place(tmp_path)


def test_the_revisions_are_those_of_the_scripts() -> None:
    scripts = ScriptDirectory.from_config(migrations.config())
    oldest_first = [script.revision for script in scripts.walk_revisions()][::-1]
    assert tuple(oldest_first) == migrations.REVISIONS
    for script in scripts.walk_revisions():
        with pytest.raises(RuntimeError, match="migrations go forward only: restore a backup"):
            script.module.downgrade()


def test_the_tables_are_named() -> None:
    assert sorted(schema.metadata.tables) == sorted(migrations.TABLES)
    assert set(shared.metadata.tables) <= set(migrations.TABLES)


def test_a_table_has_the_columns_of_the_shared_one() -> None:
    for name, table in shared.metadata.tables.items():
        if name == "search_cursors":  # what erases passages later is of no use here
            continue
        own = {column.name for column in schema.metadata.tables[name].c} - {"home", "life"}
        wanted = {column.name for column in table.c}
        assert own == wanted or own == wanted - set(KEY), name


def test_the_rows_that_sessions_gather_are_found_by_home() -> None:
    for name in ("sessions", "messages", "summaries", "requests", "passages", "search_cursors"):
        table = schema.metadata.tables[name]
        assert next(iter(table.primary_key)).name == "home"
        for index in table.indexes:
            if index.unique:
                assert next(iter(index.columns)).name == "home"


async def catalogue(raw: asyncpg.Connection) -> list[tuple[Any, ...]]:
    """All tables, columns and indexes as the database knows them."""
    columns = await raw.fetch(
        "SELECT table_name, column_name, data_type, is_nullable, collation_name"
        " FROM information_schema.columns WHERE table_schema = current_schema()"
        " AND table_name != 'alembic_version'"
    )
    indexes = await raw.fetch(
        "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = current_schema()"
        " AND tablename != 'alembic_version'"
    )
    options = await raw.fetch(
        "SELECT relname, reloptions::text FROM pg_class WHERE relkind = 'r'"
        " AND relnamespace = current_schema()::regnamespace AND relname != 'alembic_version'"
    )
    return sorted(
        (str(tuple(row)).replace("other.", "public."),) for row in (*columns, *indexes, *options)
    )


async def test_the_migrations_end_in_the_tables(url: str) -> None:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    raw = await asyncpg.connect(url)
    try:
        migrated = await catalogue(raw)
        await raw.execute("CREATE SCHEMA other; SET search_path TO other")
        for table in schema.metadata.tables.values():
            await raw.execute(str(CreateTable(table).compile(dialect=dialect)))
            for index in table.indexes:
                await raw.execute(str(CreateIndex(index).compile(dialect=dialect)))
        assert await catalogue(raw) == migrated
    finally:
        await raw.execute("DROP SCHEMA other CASCADE")
        await raw.close()


WHOLE = re.compile(
    r"heads\.(count_|forget_tenant|idle|\w+_tenant)|workload|assignments\.all|quotas\.all|"
    r"chunks\.(totals|sessions|prune)|PRUNE_CHUNKS|"
    r"debts\.(due|debtors|take_back)|spawns\.(forget|due|any_over)|BEHIND"
)
"""What operators, gauges and starts ask of all tenants, and queues, which are short."""


async def plan(raw: asyncpg.Connection, statement: str) -> str:
    """How a statement is run, whatever its parameters, with the settings of our connections."""
    for name, value in SETTINGS.items():
        await raw.execute(f"SET {name} = '{value}'")
    text, _ = numbered(statement)
    await raw.execute(f"DEALLOCATE ALL; PREPARE s AS {text}")
    given = await raw.fetchval(
        "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = 's'"
    )
    nothing = f"({', '.join(['NULL'] * given)})" if given else ""
    return "\n".join(row[0] for row in await raw.fetch(f"EXPLAIN EXECUTE s{nothing}"))


async def test_every_statement_runs_and_goes_by_an_index(url: str) -> None:
    raw = await asyncpg.connect(url, statement_cache_size=0)
    try:
        for name, statement in EVERY.items():
            steps = await plan(raw, statement)
            if not WHOLE.match(name):
                assert "Seq Scan" not in steps, f"{name}\n{steps}"
    finally:
        await raw.close()


FILLED = {
    "sessions": (
        3_000,
        {"revision": "1", "home": "n", "session": "'s' || n", "updated_ms": "n", "created_ms": "n"},
    ),
    "messages": (9_000, {"home": "n % 3", "sequence": "n / 3", "step": "n / 3", "start": "n"}),
    "requests": (3_000, {"home": "n", "request_id": "'r' || n"}),
    "passages": (6_000, {"home": "n % 3", "place": "n / 3"}),
    "summaries": (3_000, {"home": "n % 3", "id": "'s' || n"}),
    "lent_jobs": (2_000, {"id": "'j' || n", "session": "'s' || n", "queued_ms": "n"}),
    "spawns": (2_000, {"token": "'t' || n", "session": "'s' || n", "expire_ms": "n"}),
    "agent_facts": (2_000, {"id": "'f' || n", "session": "'s' || n", "said_ms": "n"}),
}
"""Rows of each table, and what their columns hold; the others hold the same in every row."""
_VALUES = {"BIGINT": "0", "TEXT": "'x' || n", "BLOB": "''::bytea", "BOOLEAN": "false"}
_NAMES = {"tenant": "'acme'", "agent": "'main'", "parent_agent": "'main'"}


async def fill(raw: asyncpg.Connection) -> None:
    """As many rows as make a wrong plan dear, and what the planner knows of them."""
    for name, (count, own) in FILLED.items():
        values = {}
        for column in schema.metadata.tables[name].c:
            usual = "'00000000-0000-0000-0000-000000000000'::uuid"
            if column.name != "life":
                usual = _NAMES.get(column.name) or _VALUES[str(column.type).split()[0]]
            values[column.name] = own.get(column.name, usual)
        await raw.execute(
            f"INSERT INTO {name} ({', '.join(values)})"
            f" SELECT {', '.join(values.values())} FROM generate_series(1, {count}) AS n"
        )
    await raw.execute("ANALYZE")


HOT = {
    "HEADS": "sessions_pkey",
    "heads.one": "sessions_pkey",
    "messages.live": "messages_pkey",
    "messages.by_host_id": "messages_host_id",
    "messages.atom_from": "messages_start",
    "messages.pinned": "messages_pinned",
    "messages.atom_late": "messages_late",
    "messages.late_between": "messages_late",
    "messages.retired_since": "messages_retired",
    "summaries.live": "summaries_pkey",
    "replies.one": "requests_pkey",
    "heads.dependents": "sessions_parent",
    "heads.idle": "sessions_idle",
    "heads.of_agent False False": "sessions_agent",
    "heads.of_agent False True": "sessions_agent",
    "heads.of_agent True True": "sessions_key",
    "heads.listing False False True": "sessions_newest",
    "jobs.due": "lent_jobs_queue",
    "jobs.coming": "lent_jobs_session",
    "spawns.due": "spawns_due",
    "spawns.asked": "spawns_request",
    "memory.newest": "agent_facts_place",
    "SCAN": "passages_pkey",
    "FIND_MESSAGES": "passages_pkey",
    "COUNT": "passages_pkey",
}


async def test_a_look_up_uses_its_own_index(url: str) -> None:
    raw = await asyncpg.connect(url, statement_cache_size=0)
    try:
        await fill(raw)
        for name, index in HOT.items():
            assert f" {index} " in await plan(raw, EVERY[name]), name
    finally:
        await raw.close()


async def test_a_list_of_texts_is_written_as_texts_are(url: str) -> None:
    raw = await asyncpg.connect(url)
    try:
        found = await Db(raw).value("SELECT (:some::text[])[2]", {"some": ["a", "b\0\1"]})
        assert found == "b\x010\x011"
    finally:
        await raw.close()
