"""One server has a file, whatever name it opens it by and whatever becomes of the lock file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from contextengine_server.context.scope import Scope
from contextengine_server.store.debts import Debt
from contextengine_server.store.errors import StoreInUse, StoreRefused
from contextengine_server.store.sqlite import SqliteStore
from contextengine_server.store.sqlite.copies import restore
from contextengine_server.testing.store.rows import Pen
from tests.unit.store.kill_child import __name__ as CHILD

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only there do SQLite's own locks know nothing of ours"
)


@contextmanager
def another_server(path: Path) -> Iterator[None]:
    """Another process has the store open, and has written to it."""
    child = subprocess.Popen(
        [sys.executable, "-m", CHILD, str(path), "7", "full"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline(), "the other process did not write"
        yield
    finally:
        child.kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


async def opened(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    await store.close()


@pytest.mark.parametrize("new", [True, False])
async def test_a_file_is_opened_by_one_server_only(tmp_path: Path, new: bool) -> None:
    path, link = tmp_path / "store.db", tmp_path / "link.db"
    if not new:
        await opened(path)
    with another_server(path):
        os.link(path, link)
        with pytest.raises(StoreInUse, match="by another name of the same file"):
            await opened(link)
        lock = path.with_name("store.db.lock")
        for delete in (True, False):
            lock.unlink() if delete else replaced(lock)
            with pytest.raises(StoreInUse, match="deleted since"):
                await opened(path)
    await opened(link)


def replaced(lock: Path) -> None:
    """The lock file is a copy of itself."""
    copy = lock.with_name("copy")
    copy.write_bytes(lock.read_bytes() if lock.exists() else b"")
    copy.replace(lock)


async def test_one_process_opens_a_file_once_too(tmp_path: Path) -> None:
    """And the first store goes on as if nobody had tried: SQLite's locks are the process's own."""
    path, link = tmp_path / "store.db", tmp_path / "link.db"
    store = SqliteStore(path)
    await store.open()
    os.link(path, link)
    with pytest.raises(StoreRefused, match="open in this process already"):
        await opened(link)
    await Pen(store).write(count=1)
    await store.close()
    await opened(link)


async def test_a_restore_into_no_place_still_finds_no_database_there(tmp_path: Path) -> None:
    path, target = tmp_path / "store.db", tmp_path / "new.db"
    await opened(path)
    restore(path, target, replace=False)
    await opened(target)


async def test_work_that_a_killed_server_had_begun_is_there_at_once_for_the_next(
    tmp_path: Path,
) -> None:
    """Nobody else can have the file: a lease that had to lapse first kept the session from being
    compacted meanwhile."""
    debt = Debt(Scope("acme", "main", "s"), "compact", 1)
    for attempts, owner in enumerate(("killed", "next"), 1):
        store = SqliteStore(tmp_path / "store.db")
        await store.open()
        await store.add_debt(debt)
        claimed = await store.claim_debt(owner, now_ms=10, lease_ms=15_000)
        assert claimed is not None
        assert (claimed.lease_owner, claimed.attempts) == (owner, attempts)
        await store.close()
