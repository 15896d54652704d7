"""The file: who may open it, whether it is ours, whether it is whole, and what schema it has."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from contextengine_server.store.errors import StoreInUse, StoreRefused
from contextengine_server.store.sql.migrations import HEAD, REVISIONS

from .statements import StoreConnection

if TYPE_CHECKING:
    import sqlalchemy as sa

APPLICATION_ID = 0x43545845
"""Marks the file as ours in its header (`PRAGMA application_id`): the letters CTXE."""

_MAGIC = b"SQLite format 3\0"
_marked = partial(str, encoding="utf-8", errors="replace")
"""A row whose bytes are no text keeps no other row from being read: what is no text in it is
marked, and its hash says that it is damaged."""
_WAIT_S = 5.0
"""How long a connection waits for a lock that SQLite itself takes for a moment (recovery,
checkpoint)."""

_held: set[Path | tuple[int, int]] = set()
"""Locked by this process, by lock file and by device and inode: the operating system's lock does
not keep a process out of its own files."""
_locked: set[int] = set()
"""The descriptors by which databases themselves are locked."""
_guard = threading.Lock()


def _leave_to_the_parent() -> None:
    """In a process that was forked: lets go of the locks that came along, which else would hold for
    as long as it lives, its parent gone or not."""
    for fd in _locked:
        os.close(fd)
    _locked.clear()


os.register_at_fork(after_in_child=_leave_to_the_parent)


class FileLock:
    """Operating-system locks on a file beside the database and on the database itself, held until
    released or until the process ends.

    The one beside it says who holds it, and is there before a database is. The one on the database
    holds whatever name the file is opened by: a hard link has a lock file of its own, and a lock
    file that is deleted or replaced is another one.

    `lockf` for the file beside and not `flock`: a forked worker process that outlives a killed
    server must not keep the database locked. On the database it must be `flock`: SQLite has its own
    locks there, of the other kind, which on Linux know nothing of this one; elsewhere they may, and
    it is not taken. What is forked closes that one first.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._path = database.with_name(database.name + ".lock")
        self._file: tuple[int, tuple[int, int]] | None = None
        with _guard:
            if self._path in _held:
                raise _open_already(database)
            self._fd = self._take(database)
            _held.add(self._path)
        try:
            self.hold()
        except BaseException:
            self.release()
            raise

    def hold(self) -> None:
        """Locks the database itself, where it is there by now and not locked yet. Raises
        StoreRefused, StoreInUse."""
        if sys.platform != "linux" or self._file is not None:
            return
        with _guard:
            try:
                found = self._database.stat()
                identity = found.st_dev, found.st_ino
                if identity in _held:
                    raise _open_already(self._database)
                fd = os.open(self._database, os.O_RDONLY)
            except OSError:
                return  # not there yet, or opening it will say why not
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                os.close(fd)
                raise StoreInUse(
                    f"{self._database} is in use by another process, by another name of the same"
                    f" file (a hard link) or with a {self._path} that was deleted since: talk to"
                    " that server, or stop it first"
                ) from error
            except OSError:
                os.close(fd)  # a file system without such locks
                return
            self._file = fd, identity
            _held.add(identity)
            _locked.add(fd)

    def _take(self, database: Path) -> int:
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreRefused(
                f"{database} cannot be locked ({error.strerror}: {self._path}):"
                " its directory must exist and be writable"
            ) from error
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(fd, 32).decode("ascii", "replace") or "unknown"
            os.close(fd)
            raise StoreInUse(
                f"{database} is in use by process {holder}: talk to that server, or stop it first"
            ) from error
        os.truncate(fd, 0)
        os.write(fd, str(os.getpid()).encode())
        return fd

    def release(self) -> None:
        """Lets go. Nothing of this process may have the database open any more: closing a file
        drops SQLite's own locks on it."""
        with _guard:
            if self._file is not None:
                fd, identity = self._file
                self._file = None
                _held.discard(identity)
                _locked.discard(fd)
                os.close(fd)
            _held.discard(self._path)
            os.close(self._fd)


def _open_already(database: Path) -> StoreRefused:
    return StoreRefused(
        f"{database} is open in this process already: use that store, or close it first"
    )


def prepare(path: Path) -> None:
    """Makes the database where there is none and brings it to the present schema. Raises
    StoreRefused."""
    if path.exists():
        _require_database(path)
    try:
        if revision(path) != HEAD:
            migrate(lambda: connect(path))
    except sqlite3.Error as error:
        raise StoreRefused(_broken(path, error)) from error


def require_known(path: Path) -> None:
    """Raises StoreRefused for a file that is no database of ours, or one of a newer version. Makes
    and changes nothing."""
    _require_database(path)
    try:
        if revision(path, read_only=True) is None:
            raise StoreRefused(f"{path} is empty: give the path of a database")
    except sqlite3.Error as error:
        raise StoreRefused(_broken(path, error, read_only=True)) from error


def _require_database(path: Path) -> None:
    """Raises StoreRefused for a file that is neither empty nor SQLite's."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
    except OSError as error:
        raise StoreRefused(
            f"{path} cannot be read ({error.strerror}): give another path, or mend its rights"
        ) from error
    if start and start != _MAGIC:
        raise StoreRefused(
            f"{path} is not an SQLite database: give another path, or restore a backup"
        )


def revision(path: Path, *, read_only: bool = False) -> str | None:
    """The schema's revision; None for an empty database. Raises StoreRefused where it is not ours
    or not known."""
    db = connect(path, read_only=read_only)
    try:
        mark = db.execute("PRAGMA application_id").fetchone()[0]
        tables = {
            name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        if not tables and not mark:
            return None
        if mark != APPLICATION_ID or "alembic_version" not in tables:
            raise StoreRefused(f"{path} is a database of another program: give another path")
        revisions: list[str] = [
            name for (name,) in db.execute("SELECT version_num FROM alembic_version")
        ]
    finally:
        db.close()
    if len(revisions) != 1 or revisions[0] not in REVISIONS:
        raise StoreRefused(
            f"{path} has schema {', '.join(revisions) or 'none'}, and this program knows none newer"
            f" than {HEAD}: run the newer version that wrote it, or restore a backup made before"
            " the upgrade"
        )
    return revisions[0]


def migrate(connected: Callable[[], sqlite3.Connection]) -> None:
    """Every step to the present schema in one transaction, on a connection made for it: a database
    is upgraded whole or not at all."""
    import sqlalchemy as sa  # takes longer than opening an up-to-date database

    from contextengine_server.store.sql import migrations

    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    # The driver must leave transactions alone: by itself it would not begin one for DDL.
    engine = sa.create_engine("sqlite://", creator=connected, poolclass=sa.NullPool)
    sa.event.listen(engine, "begin", begin)
    with engine.begin() as connection:
        migrations.upgrade(connection)
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")


def _broken(path: Path, error: sqlite3.Error, *, read_only: bool = False) -> str:
    """What is wrong with a database that cannot be opened, as far as SQLite can tell."""
    try:
        db = connect(path, read_only=read_only)
        try:
            findings = "; ".join(str(row[0]) for row in db.execute("PRAGMA quick_check(3)"))
        finally:
            db.close()
    except sqlite3.Error as worse:
        findings = str(worse)
    if findings == "ok":
        return (
            f"{path} cannot be opened: {error}. Mend that (rights, free disk space), then start"
            " again"
        )
    return (
        f"{path} is damaged ({error}; check: {findings}): restore a backup, or move the file away"
        " to begin anew"
    )


def connect(path: Path, *, read_only: bool = False) -> StoreConnection:
    """A connection that leaves transactions to its user and may change threads. The caller sees to
    one thread at a time."""
    mode = "ro" if read_only else "rwc"
    db = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        timeout=_WAIT_S,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        factory=StoreConnection,
    )
    db.text_factory = _marked
    if not read_only:
        # What is deleted is overwritten. Not every build of SQLite does it unasked.
        db.execute("PRAGMA secure_delete = ON")
        # Of a new file; an old one changes when it is vacuumed.
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    return db


# Bytes and None go as they are. Where nothing adapts them, each that is bound raises two errors and
# clears them first: 0.5 and 0.6 µs, a third of what a batch of 200 messages took of Python.
sqlite3.register_adapter(bytes, bytes.__bytes__)
sqlite3.register_adapter(type(None), {}.get)  # type: ignore[arg-type]  # None for None


def connect_writer(path: Path, *, forced: bool = True) -> StoreConnection:
    """The one connection that writes: what it committed is on disk; or, not `forced`, with the
    system, which brings it there."""
    db = connect(path)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA synchronous = {'FULL' if forced else 'NORMAL'}")
    # Pages, 48 MB: checkpoints are made beside the commits (`disk/checkpoints.py`). This one stops
    # all writes for some ms, and bounds the log where those do not keep up.
    db.execute("PRAGMA wal_autocheckpoint = 12000")
    db.execute(
        "PRAGMA journal_size_limit = 67108864"
    )  # bytes: what one huge commit made of the log is given back
    # Savepoints keep what they may have to restore there; a file would be dearer than the write
    # itself.
    db.execute("PRAGMA temp_store = MEMORY")
    db.execute("PRAGMA cache_size = -32768")  # KiB: the pages at the ends of many sessions' indexes
    return db


def connect_reader(path: Path) -> sqlite3.Connection:
    """A connection that only reads."""
    return connect(path, read_only=True)


def touch(db: sqlite3.Connection) -> None:
    """Writes a page as it is: SQLite writes what is set, whether or not it was so before."""
    db.execute("UPDATE alembic_version SET version_num = version_num")


def journal_mode(db: sqlite3.Connection) -> str:
    """How the database keeps its journal."""
    return str(db.execute("PRAGMA journal_mode").fetchone()[0])
