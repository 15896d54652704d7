"""Checkpoints: what was committed comes into the file beside the commits, and no failure of that
stops a write."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from contextengine_server.store.sqlite import SqliteStore, database, writer
from contextengine_server.testing.store.rows import Pen, message

MESSAGES = 300


async def until(there: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not there():
            await asyncio.sleep(0.01)


def in_file(path: Path) -> int:
    """How many messages the file holds, whatever stands in the log."""
    alone = path.with_name("alone.db")
    shutil.copyfile(path, alone)
    # In this order of the header's two bytes a file has no log.
    raw = bytearray(alone.read_bytes())
    raw[18:20] = b"\1\1"
    alone.write_bytes(raw)
    db = sqlite3.connect(alone)
    try:
        return int(db.execute("SELECT COUNT(*) FROM messages").fetchone()[0])
    except sqlite3.DatabaseError:
        return 0  # copied amid a checkpoint
    finally:
        db.close()


async def write(pen: Pen, first: int = 1) -> None:
    await pen.write(messages=[message(n) for n in range(first, first + MESSAGES)])


async def test_what_was_committed_comes_into_the_file_beside_the_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LOG_ROWS", MESSAGES)
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.open()
    try:
        reader = database.connect_reader(path)
        pen = Pen(store)
        await write(pen)
        await until(lambda: in_file(path) == MESSAGES)
        # Beside somebody who still reads the state of now, and sees nothing else.
        reader.execute("BEGIN")
        assert reader.execute("SELECT COUNT(*) FROM messages").fetchone()[0] == MESSAGES
        await write(pen, MESSAGES + 1)
        assert reader.execute("SELECT COUNT(*) FROM messages").fetchone()[0] == MESSAGES
        reader.close()
        await write(pen, 2 * MESSAGES + 1)
        await until(lambda: in_file(path) == 3 * MESSAGES)
    finally:
        await store.close()
    assert not path.with_name("store.db-wal").exists()


async def test_few_changes_are_left_where_they_are(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.open()
    try:
        await write(Pen(store))
        await asyncio.sleep(0.2)
        assert in_file(path) == 0
    finally:
        await store.close()
    assert in_file(path) == MESSAGES


async def test_a_failure_is_told_once_and_stops_no_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LOG_ROWS", 1)
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    try:
        opened = store._open
        assert opened is not None
        opened.checkpoints._db.close()  # what it does from now on fails
        pen = Pen(store)
        with capture_logs() as logs:
            for turn in range(3):
                await write(pen, turn * MESSAGES + 1)
                await until(lambda: not opened.checkpoints._wanted.is_set())
            await asyncio.sleep(0.1)
        assert [one["event"] for one in logs] == ["store_log_is_not_folded"]
        assert (await store.health()).ok
        head = await store.head(pen.scope)
        assert head is not None
        assert head.last_sequence == 3 * MESSAGES
    finally:
        await store.close()
