"""What a file takes is given back: in pieces, or by writing it anew."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from contextengine_server.store.sqlite import SqliteStore, database
from contextengine_server.store.sqlite.disk import purge, space


def filled(path: Path, *, old: bool = False) -> sqlite3.Connection:
    """A database with 300 pages that nothing is in any more; `old`: of a version that could not
    give them back."""
    if old:
        sqlite3.connect(path).execute("PRAGMA auto_vacuum = NONE").connection.close()
        db = sqlite3.connect(path, isolation_level=None)
    else:
        db = database.connect(path)
    db.execute("CREATE TABLE t (a)")
    db.executemany("INSERT INTO t VALUES (?)", [(b"x" * 4_000,)] * 300)
    db.execute("DELETE FROM t")
    return db


def free(db: sqlite3.Connection) -> int:
    pages: int = db.execute("PRAGMA freelist_count").fetchone()[0]
    return pages


def test_pages_are_given_back_some_at_a_time(tmp_path: Path) -> None:
    db = filled(tmp_path / "a.db")
    assert space.incremental(db)
    before, unused = space.taken(db), free(db)
    assert unused > 250
    assert space.give_back(db) is True
    assert free(db) == unused - 64
    assert before - space.taken(db) == 64 * 4_096
    while space.give_back(db):
        pass
    assert free(db) == 0
    assert space.taken(db) < before - 250 * 4_096
    assert space.give_back(db) is False
    assert space.taken(db) == (tmp_path / "a.db").stat().st_size
    db.close()


def test_of_an_old_file_nothing_is_given_back_until_it_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    db = filled(path, old=True)
    assert not space.incremental(db)
    assert space.vacuum_wanted(db) == "wanted: until then no space is given back"
    assert space.give_back(db) is False
    before = space.taken(db)
    space.prepare(db, path)
    assert space.incremental(db)
    assert space.taken(db) < before // 10
    assert free(db) == 0
    db.close()


def test_a_large_file_is_written_anew_when_somebody_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    db = filled(path, old=True)
    monkeypatch.setattr(space, "SMALL", path.stat().st_size - 1)
    space.prepare(db, path)
    assert not space.incremental(db)
    monkeypatch.setattr(space, "SMALL", path.stat().st_size)
    space.prepare(db, path)
    assert space.incremental(db)
    db.close()


def test_a_disk_that_is_nearly_full_stops_no_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    db = filled(path, old=True)

    def full(db: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(space, "vacuum", full)
    with capture_logs() as logs:
        space.prepare(db, path)
    assert [(one["event"], one["why"]) for one in logs] == [
        ("store_was_not_vacuumed", "database or disk is full")
    ]
    db.close()


def test_the_log_is_emptied_where_no_reader_is_in_the_way(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    database.prepare(path)
    db = database.connect_writer(path)
    waits = db.execute("PRAGMA busy_timeout").fetchone()[0]
    log = path.with_name("a.db-wal")
    db.execute("CREATE TABLE t (a)")
    assert log.stat().st_size > 0
    reader = database.connect_reader(path)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM t").fetchall()
    db.execute("INSERT INTO t VALUES (1)")
    assert space.truncate_log(db) is False
    reader.execute("ROLLBACK")
    assert space.truncate_log(db) is True
    assert log.stat().st_size == 0
    assert db.execute("PRAGMA busy_timeout").fetchone()[0] == waits > 50
    reader.close()
    db.close()


def test_a_file_is_to_be_written_anew_where_copies_may_be_left(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    database.prepare(path)
    db = database.connect_writer(path)
    purge.prepare(db)
    assert (purge.asked(db), purge.left(db)) == (1, False)
    purge.prepare(db)
    assert purge.asked(db) == 1
    purge.ask(db)
    assert (purge.asked(db), space.vacuum_wanted(db)) == (2, "not wanted")
    purge.done(db, 1, vacuumed=False)  # somebody has asked since it began
    assert (purge.asked(db), purge.left(db)) == (2, True)
    assert space.vacuum_wanted(db) == (
        "wanted: copies of what was deleted may be left between the rows"
    )
    purge.done(db, 2, vacuumed=True)
    assert (purge.asked(db), purge.left(db)) == (0, False)
    db.close()


async def test_a_store_whose_file_is_gone_is_not_well(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = SqliteStore(path)
    await store.open()
    path.unlink()
    health = await store.health()
    assert not health.ok
    assert health.detail  # what the system says of it, which is not the same everywhere
    assert health.facts["path"] == str(path)
    assert health.advice == (
        "Look at the disk and the path; restore a backup where the file is damaged."
    )
    await store.close()
