"""What a database has in its tables, and what the migrations make.

What they make is read from the same database: they run into a schema of their own, in a transaction
that is rolled back. So it is said in the words of that version of PostgreSQL.
"""

from __future__ import annotations

import asyncpg

from contextengine_server.store.schemas import Table

from . import TABLES, script

_MADE = "contextengine_verified"
"""The schema that the migrations run into; nobody ever sees it."""
_COLUMNS = """
    SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod)
        || CASE WHEN l.collname IS NULL OR l.collname = 'default' THEN ''
           ELSE ' collate ' || l.collname END
        || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END,
        a.attnotnull AND NOT a.atthasdef
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    LEFT JOIN pg_collation l ON l.oid = a.attcollation
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY($1)
    AND a.attnum > 0 AND NOT a.attisdropped
"""
_INDEXES = """
    SELECT c.relname, i.relname, replace(pg_get_indexdef(x.indexrelid), current_schema() || '.', '')
        || CASE WHEN x.indisvalid THEN '' ELSE ' (invalid: make it again)' END
    FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY($1)
"""
_UNLOGGED = """
    SELECT relname FROM pg_class WHERE relpersistence = 'u' AND relkind IN ('r', 'p')
    AND relnamespace = current_schema()::regnamespace AND relname = ANY($1)
"""


async def found(raw: asyncpg.Connection) -> dict[str, Table]:
    """Our tables that are there, by name."""
    ours = list(TABLES)
    columns: dict[str, dict[str, str]] = {}
    indexes: dict[str, dict[str, str]] = {}
    forced: dict[str, set[str]] = {}
    for table, column, said, must in await raw.fetch(_COLUMNS, ours):
        columns.setdefault(table, {})[column] = said
        if must:
            forced.setdefault(table, set()).add(column)
    for table, index, said in await raw.fetch(_INDEXES, ours):
        indexes.setdefault(table, {})[index] = said
    unlogged = {row[0] for row in await raw.fetch(_UNLOGGED, ours)}
    return {
        table: Table(
            columns[table],
            indexes.get(table, {}),
            "unlogged" if table in unlogged else "",
            frozenset(forced.get(table, ())),
        )
        for table in columns
    }


async def wanted(raw: asyncpg.Connection) -> dict[str, Table]:
    """Our tables as the migrations make them. Needs the right to make a schema."""
    transaction = raw.transaction()
    await transaction.start()
    try:
        await raw.execute(f"CREATE SCHEMA {_MADE}; SET LOCAL search_path TO {_MADE}")
        await raw.execute(script(None))
        return await found(raw)
    finally:
        await transaction.rollback()
