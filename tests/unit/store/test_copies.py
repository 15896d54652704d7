"""Backing up a database and restoring one: whole, at one moment, or not at all."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from contextengine_server.context.scope import Scope
from contextengine_server.store.errors import StoreInUse, StoreRefused
from contextengine_server.store.sqlite import SqliteStore
from contextengine_server.store.sqlite.copies import back_up, restore
from contextengine_server.testing.store.rows import Pen

SCOPE = Scope("acme", "main", "s")


async def written(path: Path, count: int) -> list[bytes]:
    """A database whose session has so many messages more; the bodies of all."""
    store = SqliteStore(path)
    await store.open()
    pen = Pen(store, SCOPE)
    pen.head = await store.head(SCOPE) or pen.head
    await pen.write(count=count)
    bodies = [row.body for row in await store.messages(SCOPE)]
    await store.close()
    return bodies


async def bodies_of(path: Path) -> list[bytes]:
    store = SqliteStore(path)
    await store.open()
    try:
        return [row.body for row in await store.messages(SCOPE)]
    finally:
        await store.close()


@contextmanager
def writing(path: Path) -> Iterator[threading.Event]:
    """Another connection writes without a pause. The event is set whenever it has written."""
    stop, wrote = threading.Event(), threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(path, timeout=30)) as db:
            while not stop.is_set():
                db.execute("INSERT INTO guards (tenant, state) VALUES (hex(randomblob(8)), x'')")
                db.commit()
                wrote.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert wrote.wait(30)
        yield wrote
    finally:
        stop.set()
        thread.join()


def damage(path: Path) -> None:
    """Garbage in the place of the table of messages."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        [page] = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'messages'").fetchone()
        [size] = db.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\x5a" * size)


async def test_a_copy_holds_what_the_database_does(tmp_path: Path) -> None:
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    bodies = await written(path, 3)
    done = back_up(path, copy)
    assert (done.sessions, done.messages, done.bytes) == (1, 3, copy.stat().st_size)
    assert copy.stat().st_mode & 0o777 == 0o600
    assert await bodies_of(copy) == bodies
    assert not copy.with_name("copy.db.part").exists()


async def test_it_ends_beside_a_writer(tmp_path: Path) -> None:
    """SQLite's own `.backup` begins anew at each of its writes."""
    path = tmp_path / "store.db"
    bodies = await written(path, 200)
    with writing(path) as wrote:
        for turn in range(3):
            wrote.clear()
            assert back_up(path, tmp_path / f"{turn}.db").messages == 200
            assert wrote.wait(30), "nothing was written meanwhile"
    assert await bodies_of(tmp_path / "2.db") == bodies


async def test_no_file_is_overwritten_and_none_is_left_behind(tmp_path: Path) -> None:
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    with pytest.raises(StoreRefused, match="is not there"):
        back_up(path, copy)
    assert not path.exists()
    assert not copy.exists()
    await written(path, 1)
    copy.write_text("mine")
    with pytest.raises(StoreRefused, match="exists already"):
        back_up(path, copy)
    assert copy.read_text() == "mine"
    with pytest.raises(StoreRefused, match="cannot be copied"):
        back_up(path, tmp_path / "nowhere" / "copy.db")


async def test_what_is_damaged_is_told_and_not_copied(tmp_path: Path) -> None:
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    await written(path, 50)
    damage(path)
    with pytest.raises(StoreRefused, match=r"malformed|not whole"):
        back_up(path, copy)
    assert not copy.exists()
    assert not copy.with_name("copy.db.part").exists()


async def test_only_databases_of_ours_are_taken(tmp_path: Path) -> None:
    path, other, empty = (tmp_path / name for name in ("store.db", "other.db", "empty.db"))
    await written(path, 1)
    with closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE t (x)")
    empty.touch()
    newer = tmp_path / "newer.db"
    back_up(path, newer)
    with closing(sqlite3.connect(newer)) as db:
        db.execute("UPDATE alembic_version SET version_num = '9999'")
        db.commit()
    for wrong, why in ((other, "another program"), (empty, "empty"), (newer, "9999")):
        with pytest.raises(StoreRefused, match=why):
            restore(wrong, path, replace=True)
        with pytest.raises(StoreRefused, match=why):
            back_up(wrong, tmp_path / "copy.db")
    assert not path.with_name("store.db.replaced").exists()


async def test_a_restored_database_is_the_backup_and_the_other_stands_aside(
    tmp_path: Path,
) -> None:
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    then = await written(path, 3)
    back_up(path, copy)
    now = await written(path, 2)
    with pytest.raises(StoreRefused, match="--replace"):
        restore(copy, path, replace=False)
    assert await bodies_of(path) == now
    assert restore(copy, path, replace=True).messages == 3
    assert await bodies_of(path) == then
    assert await bodies_of(tmp_path / "store.db.replaced") == now
    assert await bodies_of(copy) == then
    with pytest.raises(StoreRefused, match="earlier restore"):
        restore(copy, path, replace=True)


async def test_a_log_goes_with_its_database(tmp_path: Path) -> None:
    """What a killed server left in the log is neither lost nor read into the restored one."""
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    then = await written(path, 1)
    back_up(path, copy)
    with closing(sqlite3.connect(path)) as held:  # keeps the log from being emptied
        held.execute("SELECT COUNT(*) FROM messages").fetchone()
        now = await written(path, 2)
        assert path.with_name("store.db-wal").stat().st_size
        restore(copy, path, replace=True)
    assert await bodies_of(path) == then
    assert await bodies_of(tmp_path / "store.db.replaced") == now


async def test_nothing_is_restored_where_a_server_has_it_open_or_the_backup_is_damaged(
    tmp_path: Path,
) -> None:
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    now = await written(path, 50)
    back_up(path, copy)
    store = SqliteStore(path)
    await store.open()
    with pytest.raises((StoreInUse, StoreRefused), match=r"open|in use"):
        restore(copy, path, replace=True)
    await store.close()
    damage(copy)
    with pytest.raises(StoreRefused):
        restore(copy, path, replace=True)
    assert await bodies_of(path) == now


async def test_to_where_there_is_none(tmp_path: Path) -> None:
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    then = await written(path, 3)
    back_up(path, copy)
    restore(copy, tmp_path / "elsewhere.db", replace=False)
    assert await bodies_of(tmp_path / "elsewhere.db") == then
