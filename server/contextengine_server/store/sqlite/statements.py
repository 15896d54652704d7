"""Every statement as SQLite runs it. A test prepares each on the migrated schema and looks at its
plan."""

from __future__ import annotations

import sqlite3
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


def of_database(error: Exception) -> bool:
    """True where the database failed, and not the job: SQLite may have rolled the transaction back
    by itself then."""
    own = (
        sqlite3.IntegrityError,
        sqlite3.DataError,
        sqlite3.ProgrammingError,
        sqlite3.InterfaceError,
        sqlite3.NotSupportedError,
    )
    return isinstance(error, sqlite3.Error) and not isinstance(error, own)
