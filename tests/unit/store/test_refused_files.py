"""The whole words with which a file is refused, and what an open store says of itself."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from contextengine_server.store.errors import StoreRefused, StoreUnavailable
from contextengine_server.store.kinds import Readiness
from contextengine_server.store.memory import MemoryStore
from contextengine_server.store.sql.migrations import HEAD
from contextengine_server.store.sqlite import SqliteStore, database
from contextengine_server.store.sqlite.kind import KIND
from contextengine_server.testing.store.rows import SCOPE, Pen

BEGIN_ANEW = ": restore a backup, or move the file away to begin anew"


async def refused(path: Path) -> str:
    with pytest.raises(StoreRefused) as caught:
        await SqliteStore(path).open()
    return str(caught.value)


async def made(path: Path) -> SqliteStore:
    store = SqliteStore(path)
    await store.open()
    return store


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"just some text")
    assert await refused(path) == (
        f"{path} is not an SQLite database: give another path, or restore a backup"
    )


async def test_a_path_that_is_no_file(tmp_path: Path) -> None:
    assert await refused(tmp_path) == (
        f"{tmp_path} cannot be read (Is a directory): give another path, or mend its rights"
    )
    nowhere = tmp_path / "none" / "store.db"
    assert await refused(nowhere) == (
        f"{nowhere} cannot be locked (No such file or directory: {nowhere}.lock): its directory"
        " must exist and be writable"
    )


async def test_a_database_of_another_program(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE t (a)")
    assert await refused(path) == f"{path} is a database of another program: give another path"


@pytest.mark.parametrize(("revisions", "said"), [(["9999"], "9999"), ([], "none")])
async def test_a_database_of_a_newer_program(
    tmp_path: Path, revisions: list[str], said: str
) -> None:
    path = tmp_path / "store.db"
    await (await made(path)).close()
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM alembic_version")
        db.executemany("INSERT INTO alembic_version VALUES (?)", [(one,) for one in revisions])
    assert await refused(path) == (
        f"{path} has schema {said}, and this program knows none newer than {HEAD}: run the newer"
        " version that wrote it, or restore a backup made before the upgrade"
    )


async def test_a_database_that_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    await (await made(path)).close()
    content = bytearray(path.read_bytes())
    content[100:2000] = b"\xa5" * 1900
    path.write_bytes(content)
    text = await refused(path)
    assert text.startswith(f"{path} is damaged (database disk image is malformed; check: ")
    assert text.endswith(f"){BEGIN_ANEW}")


def test_a_sound_database_that_cannot_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    database.prepare(path)
    error = sqlite3.OperationalError("unable to open database file")
    assert database._broken(path, error) == (
        f"{path} cannot be opened: unable to open database file. Mend that (rights, free disk"
        " space), then start again"
    )


async def test_a_database_that_is_open_already(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = await made(path)
    assert await refused(path) == (
        f"{path} is open in this process already: use that store, or close it first"
    )
    # Who else wants it is told whose it is.
    assert path.with_name("store.db.lock").read_bytes() == str(os.getpid()).encode()
    await store.close()


async def test_how_a_closed_store_is(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    health = await SqliteStore(path).health()
    assert (health.ok, health.detail) == (False, "closed")
    assert health.facts == {"path": str(path), "schema": HEAD}
    memory = MemoryStore()
    health = await memory.health()
    assert (health.ok, health.detail, health.facts, health.advice) == (False, "closed", {}, "")
    await memory.open()
    await Pen(memory).write(count=1)
    health = await memory.health()
    assert (health.ok, health.detail) == (True, "open, in memory: nothing survives a restart")
    assert (health.facts, health.advice) == ({"sessions": "1"}, "")


async def test_how_a_store_is_whose_disk_is_full(tmp_path: Path) -> None:
    store = await made(tmp_path / "store.db")
    assert store._open is not None
    store._open.writer.failure = "disk full"
    health = await store.health()
    assert (health.ok, health.detail) == (False, "the last write failed: disk full")
    assert "bytes" in health.facts
    advice = (await SqliteStore(tmp_path / "other.db").health()).advice
    assert health.advice == advice != ""
    await store.close()


async def test_what_cannot_be_read_or_written_says_why(tmp_path: Path) -> None:
    store = await made(tmp_path / "store.db")
    await Pen(store).write(count=1)

    def wrong(db: sqlite3.Connection) -> None:
        db.execute("SELECT * FROM none")

    with pytest.raises(StoreUnavailable) as caught:
        await store._read(wrong)
    assert str(caught.value) == "the database cannot be read now: no such table: none"
    assert caught.value.__cause__ is None
    with pytest.raises(StoreUnavailable) as caught:
        await store._write(wrong)
    assert str(caught.value) == "the database cannot be written now: no such table: none"
    with pytest.raises(StoreUnavailable) as caught:
        await store._alone(wrong)
    assert str(caught.value) == "the database cannot be written now: no such table: none"

    def refuses(db: sqlite3.Connection) -> None:
        raise ValueError("not of the database")

    for run in (store._write, store._alone):
        with pytest.raises(ValueError, match=r"^not of the database$"):
            await run(refuses)
    assert await store.head(SCOPE) is not None
    await store.close()


async def test_what_opening_would_do(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    outlook = await KIND.outlook(str(path))
    assert outlook.readiness is Readiness.ABSENT
    await (await made(path)).close()
    outlook = await KIND.outlook(f"sqlite:///{path}")
    assert (outlook.readiness, outlook.found, outlook.advice) == (Readiness.READY, "", "")
    with sqlite3.connect(path) as db:
        db.execute("UPDATE alembic_version SET version_num = '0001'")
    older = await KIND.outlook(str(path))
    assert older.found == f"{path} has schema 0001: the next start upgrades it to {HEAD}"
    assert older.advice == "Make a backup of the file first."
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM alembic_version")
    assert (await KIND.outlook(str(path))).readiness is Readiness.READY


SETTINGS = {
    "secure_delete": 1,
    "auto_vacuum": 2,
    "journal_mode": "wal",
    "synchronous": 2,
    "wal_autocheckpoint": 12_000,
    "journal_size_limit": 64 * 1024 * 1024,
    "temp_store": 2,
    "cache_size": -32 * 1024,
}


def settings(db: sqlite3.Connection) -> dict[str, object]:
    return {name: db.execute(f"PRAGMA {name}").fetchone()[0] for name in SETTINGS}


def test_what_is_written_is_on_the_disk_and_what_is_deleted_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    database.prepare(path)
    writer, reader = database.connect_writer(path), database.connect_reader(path)
    assert settings(writer) == SETTINGS
    assert database.journal_mode(reader) == "wal"
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("CREATE TABLE t (a)")
    assert (writer.isolation_level, reader.isolation_level) == (None, None)
    writer.close()
    reader.close()
    with pytest.raises(sqlite3.OperationalError):
        database.connect_reader(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()
