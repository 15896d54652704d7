"""Backing up a database and restoring one.

`VACUUM INTO` reads one snapshot, however much is written meanwhile; SQLite's own `.backup` begins
anew at every write of another process, and does not end beside a busy server
(https://www.sqlite.org/lang_vacuum.html#vacuuminto).
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from contextengine_server.store.errors import StoreRefused

from ..database import FileLock, connect, require_known

PARTIAL = ".part"
"""What the name of a file ends with while it is written."""
REPLACED = ".replaced"
"""What the name of a database ends with that another was put in the place of."""
_LOG = ("-wal", "-shm")
_FOUND = 3
"""Faults that are told of a database that is not whole."""


class Copied(msgspec.Struct, frozen=True):
    """What a copy holds."""

    sessions: int
    messages: int
    bytes: int
    """Of its file."""


def back_up(source: Path, target: Path) -> Copied:
    """Copies a database as it is at one moment into a file of its own, whole and verified: while a
    server writes to it, too. Raises StoreRefused, and leaves no file then."""
    source, target = source.absolute(), target.absolute()
    if not source.exists():
        raise StoreRefused(f"{source} is not there: give the store's path")
    if target.exists():
        raise StoreRefused(f"{target} exists already: give another name, or move it away")
    require_known(source)
    partial = target.with_name(target.name + PARTIAL)
    try:
        partial.unlink(missing_ok=True)
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(connect(source, read_only=True)) as db:
            db.execute("VACUUM INTO ?", (str(partial),))
        copied = _verified(partial)
        _settle(partial, target)
    except (sqlite3.Error, OSError) as error:
        raise StoreRefused(f"{source} cannot be copied to {target}: {error}") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    return copied


def restore(backup: Path, target: Path, *, replace: bool) -> Copied:
    """Puts a copy of the backup in the database's place, which no server may have open. What stood
    there is moved aside where `replace` says so, under a name that ends in `.replaced`, and can be
    opened there. Raises StoreRefused, and changes nothing then."""
    backup, target = backup.absolute(), target.absolute()
    if not backup.exists():
        raise StoreRefused(f"{backup} is not there: give the path of a backup")
    require_known(backup)
    lock = FileLock(target)
    partial = target.with_name(target.name + PARTIAL)
    try:
        aside = target.with_name(target.name + REPLACED)
        if target.exists() and not replace:
            raise StoreRefused(
                f"{target} is a database already: say --replace, which moves it to {aside}"
            )
        if target.exists() and aside.exists():
            raise StoreRefused(
                f"{aside} is there from an earlier restore: delete it, or move it away"
            )
        partial.unlink(missing_ok=True)
        with closing(connect(backup, read_only=True)) as db:
            db.execute("VACUUM INTO ?", (str(partial),))
        copied = _verified(partial)
        _move_aside(target, aside)
        _settle(partial, target)
    except (sqlite3.Error, OSError) as error:
        raise StoreRefused(f"{backup} cannot be restored to {target}: {error}") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        lock.release()
    return copied


def _verified(copy: Path) -> Copied:
    """What a copy holds, once every page of it was looked at. Raises StoreRefused for one that is
    not whole."""
    with closing(connect(copy, read_only=True)) as db:
        found = [str(row[0]) for row in db.execute(f"PRAGMA integrity_check({_FOUND})")]
        if found != ["ok"]:
            raise StoreRefused(
                f"the copy is not whole ({'; '.join(found)}): the database is damaged, see"
                " `contextengine doctor`, or its disk is"
            )
        [sessions] = db.execute("SELECT COUNT(*) FROM sessions").fetchone()
        [messages] = db.execute("SELECT COUNT(*) FROM messages").fetchone()
    return Copied(sessions, messages, copy.stat().st_size)


def _move_aside(target: Path, aside: Path) -> None:
    """Moves a database away, with its log: SQLite finds a log by its database's name."""
    for ending in ("", *_LOG):
        with suppress(FileNotFoundError):
            target.with_name(target.name + ending).rename(aside.with_name(aside.name + ending))


def _settle(partial: Path, target: Path) -> None:
    """Gives a file its name once all of it is on disk: a power cut leaves all or nothing."""
    partial.chmod(0o600)
    _flush(partial, os.O_RDONLY)
    partial.rename(target)
    _flush(target.parent, os.O_RDONLY | os.O_DIRECTORY)


def _flush(path: Path, how: int) -> None:
    opened = os.open(path, how)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
