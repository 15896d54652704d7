"""What goes wrong between a store and its database: nothing that was acknowledged is lost, nothing
is there twice, and who asks is told what holds."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from asyncpg.transaction import Transaction

from contextengine_server.context.scope import Scope
from contextengine_server.store.errors import (
    RevisionConflict,
    StoreUnavailable,
    StoreUncertain,
)
from contextengine_server.store.postgres.store import PostgresStore
from contextengine_server.store.rows import Commit, StoredReply
from contextengine_server.testing.store.rows import SCOPE, Pen, debt, message, summary
from tests import postgres


@pytest.fixture
def own() -> Iterator[postgres.Cluster]:
    """A database server for one test, which may end it."""
    postgres.require()
    made = postgres.Cluster()
    made.start()
    yield made
    made.remove()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[PostgresStore]:
    postgres.require()
    made = PostgresStore(postgres.place(tmp_path) + "?pool=3&wait=2")
    await made.open()
    yield made
    await made.close()


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
async def test_a_restart_under_load_loses_and_doubles_nothing(
    own: postgres.Cluster, how: signal.Signals
) -> None:
    """Usual commits and others of many sessions, through two restarts of the database. What a
    writer is not sure of it finds out by the head, as a session does."""
    store = PostgresStore(own.url("postgres") + "?wait=2")
    await store.open()
    done = asyncio.Event()
    acknowledged: dict[Scope, list[bytes]] = {}
    failed = 0

    async def write(n: int) -> None:
        nonlocal failed
        pen = Pen(store, SCOPE._replace(session=f"s{n}"))
        kept = acknowledged.setdefault(pen.scope, [])
        while not done.is_set():
            body = b"%d of %d" % (pen.head.last_sequence + 1, n)
            row = message(pen.head.last_sequence + 1, pen.head.revision + 1, body=body)
            reply = StoredReply(f"r{pen.head.revision}", b"", b"") if n % 3 == 0 else None
            commit = pen.next(messages=[row], reply=reply)
            try:
                await store.commit(commit)
            except StoreUncertain:
                failed += 1
                await _until(store, pen, commit, kept, body)
            except StoreUnavailable:
                failed += 1
                await asyncio.sleep(0.05)
            else:
                pen.head = commit.head
                kept.append(body)

    async def _until(
        store: PostgresStore, pen: Pen, commit: Commit, kept: list[bytes], body: bytes
    ) -> None:
        while True:
            with suppress(StoreUnavailable):
                head = await store.head(pen.scope)
                if head is not None and head.same_as(commit.head):
                    pen.head = commit.head
                    kept.append(body)
                return
            await asyncio.sleep(0.05)

    writers = [asyncio.create_task(write(n)) for n in range(12)]
    for _ in range(2):
        await asyncio.sleep(1.5)
        await asyncio.to_thread(own.stop, how)
        await asyncio.sleep(0.3)
        await asyncio.to_thread(own.start)
        before = sum(map(len, acknowledged.values()))
        async with asyncio.timeout(60):
            while sum(map(len, acknowledged.values())) < before + 50:
                await asyncio.sleep(0.01)
    done.set()
    await asyncio.gather(*writers)
    assert failed > 0
    for scope, bodies in acknowledged.items():
        rows = await store.messages(scope)
        assert [row.body for row in rows] == bodies
        head = await store.head(scope)
        assert head is not None
        assert head.last_sequence == len(bodies)
    await store.close()


@pytest.mark.parametrize("usual", [True, False])
@pytest.mark.parametrize("written", [True, False])
async def test_a_commit_whose_answer_is_lost_is_answered_as_it_went(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, usual: bool, written: bool
) -> None:
    """The connection ends while the change is committed: before that is done, or behind it."""
    pen = Pen(store)
    await pen.write(count=1)
    cut = 0

    async def end(raw: Any) -> None:
        nonlocal cut
        cut += 1
        raw.terminate()
        await asyncio.sleep(0)
        raise ConnectionResetError("cut off")

    if usual:
        line = await store._transactions._connections.connect()
        store._transactions._line = line
        real = line.fetch

        async def fetch(*args: Any) -> Any:
            if written:
                await real(*args)
            return await end(line)

        monkeypatch.setattr(line, "fetch", fetch, raising=False)
    else:
        committing = Transaction.commit

        async def commit(self: Any) -> None:
            if cut:
                await committing(self)
                return
            if written:
                await committing(self)
            await end(self._connection)

        monkeypatch.setattr(Transaction, "commit", commit)
    more: dict[str, Any] = {} if usual else {"summaries": [summary("s", 1, 1)]}
    if usual or written:
        # A usual commit that was not written is written again, since nobody else was told of it.
        await pen.write(count=1, **more)
    else:
        with pytest.raises(StoreUnavailable) as refused:
            await pen.write(count=1, **more)
        assert not isinstance(refused.value, StoreUncertain)
    assert cut == 1
    there = usual or written
    assert await pen.sequences() == ([1, 2] if there else [1])
    head = await store.head(SCOPE)
    assert head == pen.head
    await pen.write(count=1)


async def test_what_cannot_be_asked_is_uncertain(
    own: postgres.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    from contextengine_server.store.postgres import transactions

    monkeypatch.setattr(transactions, "_ASKED_S", 0.5)
    store = PostgresStore(own.url("postgres") + "?wait=1")
    await store.open()
    pen = Pen(store)
    await pen.write(count=1)
    holder = await store._connections.connect()
    await holder.execute("BEGIN; SELECT 1 FROM sessions FOR UPDATE")
    writing = asyncio.create_task(pen.write(count=1))
    await asyncio.sleep(0.3)
    await asyncio.to_thread(own.stop, signal.SIGQUIT)
    with pytest.raises(StoreUncertain):
        await writing
    with pytest.raises(StoreUnavailable):
        await store.head(SCOPE)
    assert not (await store.health()).ok
    await asyncio.to_thread(own.start)
    await pen.write(count=1)
    assert (await store.health()).ok
    await store.close()


async def test_a_process_that_goes_on_behind_a_lost_connection_is_ended_first(
    store: PostgresStore,
) -> None:
    """The way to the database is cut, and its process waits for a lock with our change in its
    hands. Who is told that it was not written must not find it written later."""
    pen = Pen(store)
    await pen.write(count=1)
    holder = await store._connections.connect()
    try:
        await holder.execute("BEGIN; SELECT 1 FROM sessions FOR UPDATE")
        writing = asyncio.create_task(pen.write(count=1))
        async with asyncio.timeout(20):
            while not await holder.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                " AND datname = current_database()"
            ):
                await holder.execute("SELECT pg_stat_clear_snapshot()")
                await asyncio.sleep(0.01)
            line = store._transactions._line
            assert line is not None
            pid = line.get_server_pid()
            cut: Any = line
            cut._transport.abort()
            while await holder.fetchval("SELECT 1 FROM pg_stat_activity WHERE pid = $1", pid):
                await holder.execute("SELECT pg_stat_clear_snapshot()")
                await asyncio.sleep(0.01)
        assert not writing.done()
        await holder.execute("COMMIT")
        await writing
    finally:
        await holder.close()
    assert await pen.sequences() == [1, 2]


async def test_a_pool_that_has_run_dry_says_so(store: PostgresStore) -> None:
    async with (
        store._connections.lent(),
        store._connections.lent(),
        store._connections.lent(),
    ):
        with pytest.raises(StoreUnavailable, match=r"no connection was free for 2 s: all 3 are in"):
            await store.messages(SCOPE)
    assert await store.messages(SCOPE) == []


async def test_connections_that_ended_in_the_pool_are_noticed_by_nobody(
    store: PostgresStore,
) -> None:
    pen = Pen(store)
    await pen.write(count=1)
    holder = await store._connections.connect()
    await holder.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid != pg_backend_pid()"
    )
    assert await pen.sequences() == [1]
    await pen.write(count=1)
    await store.add_debt(debt(SCOPE))
    await pen.write(count=1, reply=StoredReply("r", b"", b""))
    assert await pen.sequences() == [1, 2, 3]
    await holder.close()


async def test_texts_with_nul_are_kept_and_found(store: PostgresStore) -> None:
    scope = Scope("ac\0me", "ma\1in", "s\0\1")
    pen = Pen(store, scope, "a\0life", session_key="k\0")
    await pen.write(messages=[message(1, host_id="h\0")], bind_key=True)
    await pen.write(
        messages=[message(2, host_id="h\1")],
        summaries=[summary("s\0", 1, 1, 2)],
        debt=debt(scope, last_error="why\0"),
        reply=StoredReply("r\0", b"\0", b"\0"),
    )
    await pen.write(messages=[message(3, host_id="h\0" + "0")])
    assert await store.head(scope) == pen.head
    assert await store.current_session("ac\0me", "ma\1in", "k\0") == scope.session
    assert [row.host_id for row in await store.messages(scope)] == ["h\0", "h\1", "h\0" + "0"]
    assert [row.sequence for row in await store.messages_by_host_id(scope, ["h\0"])] == [1]
    assert [row.id for row in await store.summaries(scope)] == ["s\0"]
    assert (await store.debts(scope))[0].last_error == "why\0"
    assert await store.reply(scope, "r\0") == StoredReply("r\0", b"\0", b"\0")
    assert [head.scope for head in await store.list_sessions("ac\0me", limit=9)] == [scope]


async def test_commits_of_many_sessions_are_one_statement(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    pens = [Pen(store, SCOPE._replace(session=f"s{n}")) for n in range(60)]
    await asyncio.gather(*(pen.write(count=1) for pen in pens))
    counted = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
    watcher = await store._connections.connect()
    await watcher.execute("SELECT pg_stat_clear_snapshot()")

    async def commits() -> int:
        await asyncio.sleep(1.2)  # a server's process reports once a second
        found: int = await watcher.fetchval(counted)
        return found

    statements = 0
    real = store._transactions._at_once

    async def at_once(changes: Any) -> set[int]:
        nonlocal statements
        statements += 1
        return await real(changes)

    monkeypatch.setattr(store._transactions, "_at_once", at_once)
    before = await commits()
    await asyncio.gather(*(pen.write(count=2) for pen in pens))
    assert statements <= 2
    assert await commits() - before < 20
    await watcher.close()


async def test_two_who_write_the_same_sessions_in_groups_wait_in_turn(
    store: PostgresStore, tmp_path: Path
) -> None:
    """Rounds of two stores over the same sessions: no deadlock, no gap, each race lost once."""
    other = PostgresStore(postgres.place(tmp_path))
    await other.open()
    scopes = [SCOPE._replace(session=f"s{n}") for n in range(12)]
    for scope in scopes:
        await Pen(store, scope).write(count=1)

    async def append(one: PostgresStore, scope: Scope, times: int) -> int:
        lost = 0
        pen = Pen(one, scope)
        while times:
            head = await one.head(scope)
            assert head is not None
            pen.head = head
            try:
                await pen.write(count=1)
            except RevisionConflict:
                lost += 1
            else:
                times -= 1
        return lost

    await asyncio.gather(*(append(one, scope, 8) for one in (store, other) for scope in scopes))
    for scope in scopes:
        assert [row.sequence for row in await store.messages(scope)] == list(range(1, 18))
    await other.close()


async def test_the_clock_is_the_databases(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever this machine's says."""
    said = await store._connections.read(
        lambda db: db.value("SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::bigint")
    )
    monkeypatch.setattr("time.time_ns", lambda: 0)
    assert abs(store.clock_ms() - said) < 30_000
