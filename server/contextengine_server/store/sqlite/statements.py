"""Every statement as SQLite runs it. A test prepares each on the migrated schema and looks at its
plan."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain, repeat
from typing import Any

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
    """As `SQL.heads.update`, for several sessions at once: each row has the parameters of one. Rows
    of NULLs meet none."""
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
    """As `SQL.messages.insert`, for several rows at once. Rows of NULLs are left out."""
    columns = (*KEY, *MESSAGE)
    row = f"({', '.join('?' for _ in columns)})"
    return (
        f"INSERT INTO messages ({', '.join(columns)})"
        f" SELECT * FROM (VALUES {', '.join([row] * count)}) WHERE column1 IS NOT NULL"
    )


class AskedBack(Exception):
    """The transaction is to be taken back, since others go first."""


class StoreConnection(sqlite3.Connection):
    """A connection whose transaction can be asked back."""

    asked_back = False
    """Set from any thread: no further rows are to be written in this transaction."""

    def ask_back(self) -> None:
        """From any thread: has the transaction end without what it was to write, now or before the
        next statement over rows. One that is about to commit may do so."""
        self.asked_back = True
        self.interrupt()


def was_asked_back(error: Exception) -> bool:
    """Whether that ended a transaction, within a statement or between two."""
    code = getattr(error, "sqlite_errorcode", None)
    return code == sqlite3.SQLITE_INTERRUPT or isinstance(error, AskedBack)


_MOST_AT_ONCE = 256
"""Rows of one statement: a third of SQLite's limit of parameters (32,766)."""


def at_once(
    db: sqlite3.Connection, statement: Callable[[int], str], rows: Sequence[tuple[Any, ...]]
) -> int:
    """Runs a statement over all rows at once, filled up with NULLs to a power of two, so that few
    statements are prepared. Answers how many rows it met. Raises AskedBack.

    After each statement the thread waits for the interpreter, after each row with `executemany`:
    beside a loop that never rests 200 messages took 8 ms in one statement and 12 in four where
    threads switch after 1 ms, 4.5 and 5.2 where they do after 0.2.
    """
    met = 0
    for first in range(0, len(rows), _MOST_AT_ONCE):
        piece = rows[first : first + _MOST_AT_ONCE]
        size = 1 << (len(piece) - 1).bit_length()
        values = list(chain.from_iterable(piece))
        values += repeat(None, (size - len(piece)) * len(piece[0]))
        if isinstance(db, StoreConnection) and db.asked_back:
            raise AskedBack
        met += db.execute(statement(size), values).rowcount
    return met
