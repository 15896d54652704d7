"""The store in one SQLite file, as settings name it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from contextengine_server.store import schemas as judged
from contextengine_server.store.errors import StoreRefused
from contextengine_server.store.kinds import Outlook, Readiness, StoreKind
from contextengine_server.store.protocols import Store
from contextengine_server.store.schemas import SchemaPlan
from contextengine_server.store.sql.migrations import HEAD, REVISIONS

from . import database, schemas
from .copies import back_up, restore
from .store import SqliteStore

if TYPE_CHECKING:
    from contextengine_server.store.transfer.side import CopySource, CopyTarget

T = TypeVar("T")

_PREFIX = "sqlite:///"


class SqliteKind(StoreKind):
    """`sqlite:///path`, or a path alone."""

    urls = f"a path or {_PREFIX}path ({_PREFIX}/path for an absolute one)"
    eases = True
    shared = False
    schema = HEAD

    def check(self, url: str) -> None:
        """Refuses what names no file."""
        if url.startswith("sqlite:") and not url.startswith(_PREFIX):
            raise ValueError(f"must be {self.urls}")
        if url.removeprefix(_PREFIX) in ("", ":memory:"):
            raise ValueError("must name a file; memory: is a store that keeps nothing")

    def place(self, url: str) -> str:
        """The file's absolute path."""
        return str(_path(url).absolute())

    async def outlook(self, url: str) -> Outlook:
        """Whether there is a file, and what schema it has."""
        return await asyncio.to_thread(_outlook, _path(url))

    async def plan(self, url: str) -> SchemaPlan:
        """See StoreKind."""
        path = _path(url).absolute()
        return await asyncio.to_thread(_known, path, schemas.plan)

    async def migrate(self, url: str) -> None:
        """See StoreKind. Raises StoreInUse where a server, or another who migrates, has the file
        open."""
        await asyncio.to_thread(_migrate, _made(url).absolute())

    async def faults(self, url: str) -> list[str]:
        """See StoreKind."""
        path = _path(url).absolute()
        if not path.exists():
            raise StoreRefused(f"no database at {path}")
        return await asyncio.to_thread(_known, path, _faults)

    def copied_from(self, url: str) -> AbstractAsyncContextManager[CopySource]:
        """See StoreKind."""
        from .copies import side

        return side.source(_path(url).absolute())

    def copied_into(self, url: str) -> AbstractAsyncContextManager[CopyTarget]:
        """See StoreKind."""
        from .copies import side

        return side.target(_path(url).absolute())

    async def back_up(self, url: str, target: Path) -> dict[str, int]:
        """See StoreKind; counts sessions, messages and bytes."""
        path = _path(url).absolute()
        return msgspec.structs.asdict(await asyncio.to_thread(back_up, path, target))

    async def restore(self, url: str, backup: Path, *, replace: bool) -> dict[str, int]:
        """See StoreKind; counts sessions, messages and bytes."""
        path = _path(url).absolute()
        path.parent.mkdir(parents=True, exist_ok=True)
        done = await asyncio.to_thread(restore, backup, path, replace=replace)
        return msgspec.structs.asdict(done)

    def store(self, url: str) -> Store:
        """The store, whose directory is there. Raises OSError where it cannot be made."""
        return SqliteStore(_made(url))

    def eased(self, url: str) -> Store:
        """The same without an fsync at each commit: the system writes the log when it likes."""
        return SqliteStore(_made(url), forced=False)


def _made(url: str) -> Path:
    path = _path(url)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _path(url: str) -> Path:
    return Path(url.removeprefix(_PREFIX))


def _outlook(path: Path) -> Outlook:
    if not path.exists():
        return Outlook(
            Readiness.ABSENT, f"no database at {path.absolute()} yet: the first start makes it"
        )
    schema = _schema(path)
    if schema in REVISIONS and schema != HEAD:
        found = f"{path.absolute()} has schema {schema}: the next start upgrades it to {HEAD}"
        return Outlook(Readiness.OLDER, found, "Make a backup of the file first.")
    return Outlook(Readiness.READY)


def _schema(path: Path) -> str | None:
    """The schema's revision as the file says it; None where it does not say, which opening it then
    explains."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
            row = db.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error:
        return None
    return None if row is None else str(row[0])


def _known(path: Path, look: Callable[[Path], T]) -> T:
    """What a look at a file finds that is ours, or not there."""
    if path.exists() and path.stat().st_size:
        database.require_known(path)
    try:
        return look(path)
    except sqlite3.Error as error:
        raise StoreRefused(f"{path} cannot be read: {error}") from error


def _migrate(path: Path) -> None:
    lock = database.FileLock(path)
    try:
        database.prepare(path)
    finally:
        lock.release()


def _faults(path: Path) -> list[str]:
    return judged.faults(schemas.wanted(), schemas.found(path))


KIND = SqliteKind()
