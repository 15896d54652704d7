"""Every statement as SQLite runs it. A test prepares each on the migrated schema and looks at its
plan."""

from __future__ import annotations

from functools import cache

from contextengine_server.store.sql.columns import EXPECTED, KEY, MESSAGE, UPDATED
from contextengine_server.store.sql.dialect import Dialect
from contextengine_server.store.sql.statements import Statements

SQL = Statements(
    Dialect(
        true="1",
        is_true="{} = 1",
        is_false="{} = 0",
        greatest="MAX",
        least="MIN",
        no_bytes="x''",
        through=" INDEXED BY {}",
        among=" IN (SELECT value FROM json_each(:{}))",
        bytes_of="LENGTH(CAST({} AS BLOB))",
    )
)
"""Lists are bound as JSON: one statement whatever their length."""


@cache
def update_heads(count: int) -> str:
    """As `SQL.heads.update`, for several sessions at once: each row has the parameters of one."""
    width, wanted = len(UPDATED), (*KEY, *EXPECTED)
    row = f"({', '.join('?' for _ in (*UPDATED, *wanted))})"
    changes = ", ".join(f"{name} = new.column{place}" for place, name in enumerate(UPDATED, 1))
    conditions = [
        f"sessions.{name} = new.column{place}" for place, name in enumerate(wanted, width + 1)
    ]
    return (
        f"UPDATE sessions SET {changes} FROM (VALUES {', '.join([row] * count)}) AS new WHERE"
        f" {' AND '.join(conditions)}"
    )


@cache
def insert_messages(count: int) -> str:
    """As `SQL.messages.insert`, for several rows at once."""
    columns = (*KEY, *MESSAGE)
    row = f"({', '.join('?' for _ in columns)})"
    return f"INSERT INTO messages ({', '.join(columns)}) VALUES {', '.join([row] * count)}"
