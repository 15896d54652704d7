"""SQLite files of other programs, opened to be read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from contextengine_server.cli.output import CommandFailed

MAGIC = b"SQLite format 3\x00"


def is_database(file: Path) -> bool:
    """Whether a file is SQLite's. Raises OSError."""
    with file.open("rb") as head:
        return head.read(len(MAGIC)) == MAGIC


@contextmanager
def opened(file: Path) -> Iterator[sqlite3.Connection]:
    """The file, which is not written to: its program may have it open. Raises CommandFailed."""
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            yield database
    except sqlite3.Error as error:
        raise CommandFailed(f"{file} cannot be read as a database: {error}") from error


def tables(file: Path) -> set[str]:
    """The names of its tables."""
    with opened(file) as database:
        found = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {str(row["name"]) for row in found}


def column(row: sqlite3.Row, name: str) -> Any:
    """A value; None where an older version of the program has no such column."""
    return row[name] if name in row.keys() else None  # noqa: SIM118 (a Row iterates its values)
