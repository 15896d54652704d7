"""SQLite files of other programs, opened to be read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from contextengine_server.cli.output import CommandFailed

if TYPE_CHECKING:
    from contextengine.formats import TranscriptError

T = TypeVar("T")
R = TypeVar("R")
_NOT_AS_WRITTEN = (TypeError, ValueError, AttributeError, LookupError, RecursionError)
"""What is raised where a column holds another kind of value than its program puts there."""
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
            # What is no UTF-8 in one text hides no other.
            database.text_factory = lambda raw: raw.decode("utf-8", "replace")
            yield database
    except sqlite3.Error as error:
        raise CommandFailed(f"{file} cannot be read as a database: {error}") from error


def tables(file: Path) -> set[str]:
    """The names of its tables."""
    with opened(file) as database:
        found = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {str(row["name"]) for row in found}


def each(
    file: Path, rows: Iterable[tuple[str, T]], read: Callable[[T], R]
) -> Iterator[R | TranscriptError]:
    """What is read of rows that are given with the names of their sessions. One that cannot be read
    comes as the error that says so: it hides none behind it."""
    from contextengine.formats import TranscriptError

    for name, row in rows:
        found: R | TranscriptError
        try:
            found = read(row)
        except TranscriptError as error:
            found = TranscriptError(file, error.line, f"session {name}, {error.what}")
        except _NOT_AS_WRITTEN as error:
            what = f"session {name} is not as its program writes it: {error}"
            found = TranscriptError(file, 1, what)
        yield found


def column(row: sqlite3.Row, name: str) -> Any:
    """A value; None where an older version of the program has no such column."""
    return row[name] if name in row.keys() else None  # noqa: SIM118 (a Row iterates its values)
