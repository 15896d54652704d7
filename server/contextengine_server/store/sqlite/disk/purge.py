"""Taking the words of erased passages out of the index's segments.

FTS5 does not take out what is deleted: it writes that it is gone, and both stay until all segments
are folded into one. (Its `secure-delete` came with SQLite 3.42, which many systems have not got.)
So what erases passages asks for a purge, in a row that outlives the process; a purge folds all
segments in pieces of a few ms, then gives back the space and empties the log. A small file is
written anew for it; of a large one it is noted that this should be done.
"""

from __future__ import annotations

import sqlite3

TABLE = "search_purges"
_MAKE = f"CREATE TABLE {TABLE} (id INTEGER PRIMARY KEY, asked INTEGER NOT NULL)"
_ASK = f"""
    INSERT INTO {TABLE} (id, asked) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET asked = asked + 1
"""
_ASKED = f"SELECT asked FROM {TABLE} WHERE id = 1"
_DONE = f"DELETE FROM {TABLE} WHERE id = 1 AND asked = :asked"
_LEFT_ID = 2
"""The row that says that the file should be written anew."""
_LEFT = f"INSERT INTO {TABLE} (id, asked) VALUES ({_LEFT_ID}, 0) ON CONFLICT (id) DO NOTHING"
_VACUUMED = f"DELETE FROM {TABLE} WHERE id = {_LEFT_ID}"
_PAGES = 16
"""Pages written by one piece."""


def prepare(db: sqlite3.Connection) -> None:
    """Makes the table where there is none: an index from before may hold what was erased then."""
    found = db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (TABLE,)).fetchone()
    if found is None:
        db.execute("BEGIN IMMEDIATE")
        db.execute(_MAKE)
        db.execute(_ASK)
        db.execute("COMMIT")


def ask(db: sqlite3.Connection) -> None:
    """Something was erased."""
    db.execute(_ASK)


def asked(db: sqlite3.Connection) -> int:
    """How often a purge was asked for since the last one; 0: there is nothing to do."""
    row = db.execute(_ASKED).fetchone()
    return 0 if row is None else int(row[0])


def done(db: sqlite3.Connection, number: int, *, vacuumed: bool) -> None:
    """A purge that began when so many were asked for is over; those asked for since stand.
    `vacuumed`: the file was written anew for it."""
    db.execute(_DONE, {"asked": number})
    db.execute(_VACUUMED if vacuumed else _LEFT)


def left(db: sqlite3.Connection) -> bool:
    """Whether something was erased since the file was written anew."""
    return db.execute(f"SELECT 1 FROM {TABLE} WHERE id = {_LEFT_ID}").fetchone() is not None


def fold(db: sqlite3.Connection, table: str, *, begin: bool) -> bool:
    """Folds a few pages of all segments into one; False where there is nothing to fold (SQLite's
    own test for that: fewer than two changes). `begin`: also those that need no folding."""
    before = db.total_changes
    pages = -_PAGES if begin else _PAGES
    db.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', {pages})")
    return db.total_changes - before >= 2
