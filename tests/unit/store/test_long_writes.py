"""Nobody waits long for what somebody else writes: long writes let others go first, and come by
turns with them."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from contextengine_server.context.scope import Scope
from contextengine_server.store.rows import Commit, MessageRow, SessionHead
from contextengine_server.store.sqlite import SqliteStore
from tests.unit.store.writing import commit, writer_of


@pytest_asyncio.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "store.db")
    await opened.open()
    yield opened
    await opened.close()


@contextmanager
def long_begun(store: SqliteStore, written: list[str]):
    """A long write of a tenant is amid a statement that ends only when it is told to, unless it is
    asked back; from the second time on it takes no time. Yields how often it was begun."""
    begun: list[threading.Event] = [threading.Event(), threading.Event()]
    times: list[None] = []
    going = threading.Event()

    def turns() -> int:
        begun[0].set()
        return not going.wait(0.001)

    def work(db: sqlite3.Connection) -> None:
        times.append(None)
        if len(times) > 1:
            return
        db.create_function("goes_on", 0, turns)
        db.execute(
            "WITH RECURSIVE n (i, more) AS (SELECT 1, 1 UNION ALL"
            " SELECT i + 1, goes_on() FROM n WHERE more) SELECT COUNT(*) FROM n"
        ).fetchone()

    submit = writer_of(store).submit
    submit(work, lambda _: written.append("long"), tenant="noisy", rows=200)
    assert begun[0].wait(60)
    try:
        yield times
    finally:
        going.set()


async def test_a_long_write_lets_go_first_who_comes_with_a_short_one(store: SqliteStore) -> None:
    written: list[str] = []
    submit = writer_of(store).submit
    with long_begun(store, written) as times:
        waiting = [
            submit(lambda db, who=who: who, written.append, tenant=tenant)  # type: ignore[misc]
            for who, tenant in (("own", "noisy"), ("quiet", "quiet"), ("server", ""))
        ]
        async with asyncio.timeout(30):
            await asyncio.gather(*waiting)
    assert written[:2] == ["quiet", "long"]
    assert sorted(written[2:]) == ["own", "server"]
    assert len(times) == 2


@pytest.mark.parametrize(("tenant", "rows"), [("noisy", 1), ("", 1), ("quiet", 200)])
async def test_a_long_write_is_put_off_for_nothing_else(
    store: SqliteStore, tenant: str, rows: int
) -> None:
    written: list[str] = []
    with long_begun(store, written) as times:
        other = writer_of(store).submit(
            lambda db: None, lambda _: written.append("other"), tenant=tenant, rows=rows
        )
        await asyncio.sleep(0.05)
        assert not written
    await other
    assert written == ["long", "other"]
    assert len(times) == 1


async def test_a_batch_that_was_asked_back_is_written_once(store: SqliteStore) -> None:
    """Between two statements, where nothing can be interrupted."""
    db, asked = writer_of(store)._db, list[str]()

    def trace(statement: str) -> None:
        if statement.startswith("UPDATE sessions"):
            db.asked_back = not asked
            asked.append(statement)

    await store.commit(commit("s"))
    db.set_trace_callback(trace)
    rows = [MessageRow(n, 1, 1, b"h" * 32, b"x", 2) for n in range(2, 202)]
    head = SessionHead(Scope("acme", "main", "s"), "i", 2, 201)
    await store.commit(Commit(head, 1, messages=rows))
    assert len(asked) == 2
    assert (await store.counts())["messages"] == 201


async def test_what_was_meant_for_a_long_write_ends_no_other(store: SqliteStore) -> None:
    db, asked = writer_of(store)._db, list[str]()

    def trace(statement: str) -> None:
        if statement.startswith("INSERT INTO messages") and not asked:
            asked.append(statement)
            db.ask_back()

    db.set_trace_callback(trace)
    await store.commit(commit("s"))
    await store.commit(commit("t"))
    assert asked
    assert (await store.counts())["messages"] == 2


async def test_another_comes_before_the_next_long_write_of_who_has_one(store: SqliteStore) -> None:
    """Though that one was queued first, while nobody else waited."""
    written: list[str] = []
    begun, going = threading.Event(), threading.Event()

    def holds(db: sqlite3.Connection) -> str:
        begun.set()
        going.wait(60)
        return "noisy1"

    def write(who: str, rows: int) -> asyncio.Future[str]:
        tenant = who.rstrip("12")
        return writer_of(store).submit(lambda db: who, written.append, tenant=tenant, rows=rows)

    await asyncio.gather(write("noisy", 200), write("quiet", 1))  # both are there
    written.clear()
    first = writer_of(store).submit(holds, written.append, tenant="noisy", rows=200)
    assert begun.wait(60)
    others = [write("noisy2", 200), write("quiet1", 1)]
    going.set()
    await asyncio.gather(first, *others)
    assert written == ["noisy1", "quiet1", "noisy2"]
