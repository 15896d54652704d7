"""What the file takes on the disk, and how that is given back.

A page that is no longer used stays in the file until it is taken out. With `auto_vacuum =
INCREMENTAL` that is done in pieces; a file of an earlier version has to be written anew once for
it.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import structlog

from . import purge

log = structlog.get_logger("contextengine.store")

_INCREMENTAL = 2
_PAGES = 64
"""Pages given back by one piece: a few ms."""
_CHECKPOINT_WAIT_MS = 50
"""How long a checkpoint waits for readers, and all writes with it; else it comes later."""

SMALL = 256 * 1024 * 1024
"""Bytes of a file that is written anew at a start without being asked: a second or two."""
TINY = 64 * 1024 * 1024
"""Bytes of a file that is written anew after each deletion: some 100 ms."""


def incremental(db: sqlite3.Connection) -> bool:
    """Whether space can be given back in pieces."""
    # A connection hears of what another one changed of the file when it reads from it; to ask it
    # for a setting is none.
    db.execute("PRAGMA schema_version").fetchone()
    return bool(db.execute("PRAGMA auto_vacuum").fetchone()[0] == _INCREMENTAL)


def vacuum_wanted(db: sqlite3.Connection) -> str:
    """Whether the file should be written anew, and why."""
    if not incremental(db):
        return "wanted: until then no space is given back"
    if purge.left(db):
        return "wanted: copies of what was deleted may be left between the rows"
    return "not wanted"


def prepare(db: sqlite3.Connection, path: Path) -> None:
    """A file of an earlier version is written anew, so that space can be given back from now on. A
    large one is left as it is until somebody asks."""
    if incremental(db) or path.stat().st_size > SMALL:
        return
    try:
        vacuum(db)
    except sqlite3.Error as error:  # the disk is nearly full, say: that stops no start
        log.warning("store_was_not_vacuumed", why=str(error))


def taken(db: sqlite3.Connection) -> int:
    """Bytes of the file."""
    pages, size = (
        int(db.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "page_size")
    )
    return pages * size


def vacuum(db: sqlite3.Connection) -> None:
    """Writes the whole file anew, without gaps and without anything that was deleted. Outside a
    transaction; needs as much free disk as the file takes.

    `secure_delete` overwrites what is deleted where it stands. Where SQLite had moved a row from
    one page to the next before, a copy may be left in the room of the first that is not used.
    Nothing but this takes such copies out.
    """
    db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    db.execute("VACUUM")


def give_back(db: sqlite3.Connection) -> bool:
    """Takes some unused pages out of the file; False where there are none."""
    if not incremental(db) or not db.execute("PRAGMA freelist_count").fetchone()[0]:
        return False
    for _ in range(_PAGES):
        # Python's driver takes one step of this statement, which is one page, whatever it asks for.
        db.execute("PRAGMA incremental_vacuum(1)")
    return True


def truncate_log(db: sqlite3.Connection) -> bool:
    """Moves the log into the file and empties it, so that it holds nothing that was deleted since.
    Outside a transaction. False where a reader is in the way."""
    before = db.execute("PRAGMA busy_timeout").fetchone()[0]
    db.execute(f"PRAGMA busy_timeout = {_CHECKPOINT_WAIT_MS}")
    try:
        busy: int = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    finally:
        db.execute(f"PRAGMA busy_timeout = {before}")
    return not busy
