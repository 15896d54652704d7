"""What a file has in its tables, what the migrations make, and what they would do to a file.

What they would do is seen by doing it to a database in memory that has the file's tables and none
of its rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from secrets import token_hex

from contextengine_server.store.schemas import SchemaPlan, Table
from contextengine_server.store.sql import migrations

from ..database import connect, migrate, revision

_OBJECTS = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
_TABLES = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL"
_COLUMNS = 'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_xinfo(?)'
_INDEXES = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ?"


def plan(path: Path) -> SchemaPlan:
    """What bringing a file to the present schema would do. Makes and changes nothing. Raises
    StoreRefused, and sqlite3.Error."""
    since = revision(path, read_only=True) if path.exists() and path.stat().st_size else None
    if since == migrations.HEAD:
        return SchemaPlan(since, migrations.HEAD)
    said: list[str] = []
    with _memory(said) as connected:
        if since is not None:
            with closing(connected()) as db:
                _take_tables(path, db, since)
            said.clear()
        migrate(connected)
    script = "".join(f"{one.strip()};\n" for one in said if _changes(one))
    steps = migrations.steps(migrations.config(), since)
    return SchemaPlan(since or "", migrations.HEAD, steps, script)


def found(path: Path) -> dict[str, Table]:
    """The tables of a file, by name. Raises sqlite3.Error."""
    with closing(connect(path, read_only=True)) as db:
        return _tables(db)


def wanted() -> dict[str, Table]:
    """The tables as the migrations make them."""
    with _memory([]) as connected:
        migrate(connected)
        with closing(connected()) as db:
            return _tables(db)


@contextmanager
def _memory(told: list[str]) -> Iterator[Callable[[], sqlite3.Connection]]:
    """How to connect to a database in memory, which is gone at the end, and `told` of whatever is
    done to it."""
    name = f"file:{token_hex(8)}?mode=memory&cache=shared"

    def connected() -> sqlite3.Connection:
        db = sqlite3.connect(name, uri=True, isolation_level=None, check_same_thread=False)
        db.set_trace_callback(told.append)
        return db

    with closing(sqlite3.connect(name, uri=True)):  # it lives as long as anyone is connected
        yield connected


def _take_tables(path: Path, db: sqlite3.Connection, since: str) -> None:
    with closing(connect(path, read_only=True)) as file:
        objects = file.execute(_OBJECTS).fetchall()
    # A virtual table brings tables of its own along, which come again after it.
    objects.sort(key=lambda one: not one[1].upper().startswith("CREATE VIRTUAL"))
    for name, sql in objects:
        there = db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone()
        if there is None and not name.startswith("sqlite_"):
            db.execute(sql)
    db.execute("INSERT INTO alembic_version VALUES (?)", (since,))


def _changes(statement: str) -> bool:
    """Whether a statement changes rows or tables, and is not SQLite's own."""
    return not statement.startswith(("--", "SELECT", "PRAGMA"))


def _tables(db: sqlite3.Connection) -> dict[str, Table]:
    tables = {}
    for name, sql in db.execute(_TABLES).fetchall():
        columns, forced = {}, set()
        for column, kind, must, usual, key in db.execute(_COLUMNS, (name,)):
            columns[column] = f"{kind}{' not null' * must}{f' key {key}' if key else ''}"
            if must and usual is None:
                forced.add(column)
        made = db.execute(_INDEXES, (name,)).fetchall()
        indexes = {index: " ".join((text or "its key").split()) for index, text in made}
        virtual = " ".join(sql.split()) if sql.upper().startswith("CREATE VIRTUAL") else ""
        tables[name] = Table(columns, indexes, virtual, frozenset(forced))
    return tables
