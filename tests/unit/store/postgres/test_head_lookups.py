"""Where sessions stand: asked together, by a connection of its own, and answered with no row where
nothing changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.archives import ArchivedObject
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.postgres import head_lookups, keys, transactions, writes
from contextengine_server.store.postgres.head_lookups import KnownHeads
from contextengine_server.store.postgres.store import PostgresStore
from contextengine_server.testing.store.rows import SCOPE, Pen
from tests import postgres


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[PostgresStore]:
    postgres.require()
    made = PostgresStore(postgres.place(tmp_path) + "?pool=3&wait=2")
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def other(tmp_path: Path, store: PostgresStore) -> AsyncIterator[PostgresStore]:
    """Another server's store over the same database."""
    made = PostgresStore(postgres.place(tmp_path))
    await made.open()
    yield made
    await made.close()


@pytest.fixture
def answered(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each look-up of `store` was answered with."""
    counts: list[int] = []
    real = store._heads._rows

    async def rows(*args: Any) -> Any:
        found = await real(*args)
        counts.append(len(found))
        return found

    monkeypatch.setattr(store._heads, "_rows", rows)
    return counts


async def test_what_is_asked_for_at_once_is_one_look_up(
    store: PostgresStore, answered: list[int]
) -> None:
    pens = [Pen(store, SCOPE._replace(session=f"s{n}")) for n in range(40)]
    await asyncio.gather(*(pen.write(count=1) for pen in pens))
    heads = await asyncio.gather(*(store.head(pen.scope) for pen in pens))
    assert list(heads) == [pen.head for pen in pens]
    assert len(answered) == 1


async def test_where_nothing_changed_no_row_is_read(
    store: PostgresStore, other: PostgresStore, answered: list[int]
) -> None:
    """What this server wrote itself it knows, and what it has read; of what another one wrote it
    reads the row, once."""
    pens = [Pen(other, SCOPE._replace(session=f"s{n}")) for n in range(3)]
    for pen in pens:
        await pen.write(count=1)
    mine = Pen(store, SCOPE._replace(session="mine"))
    await mine.write(count=1)
    assert await store.head(mine.scope) is mine.head
    for expected in (3, 0):
        heads = await asyncio.gather(*(store.head(pen.scope) for pen in pens))
        assert list(heads) == [pen.head for pen in pens]
        assert answered[-1] == expected
    await pens[1].write(count=1)
    heads = await asyncio.gather(*(store.head(pen.scope) for pen in pens))
    assert list(heads) == [pen.head for pen in pens]
    assert answered == [0, 3, 0, 1]


async def test_a_head_is_never_older_than_its_question(store: PostgresStore) -> None:
    pen = Pen(store)
    await pen.write(count=1)
    for _ in range(20):
        asking = asyncio.ensure_future(store.head(SCOPE))
        await asyncio.sleep(0)
        await pen.write(count=1)
        head = await store.head(SCOPE)
        assert head == pen.head
        await asking


async def test_a_head_is_never_older_than_what_another_server_acknowledged(
    store: PostgresStore, other: PostgresStore
) -> None:
    pen = Pen(other)
    for _ in range(40):
        asking = asyncio.ensure_future(store.head(SCOPE))
        await pen.write(count=1)
        assert await store.head(SCOPE) == pen.head
        await asking


async def test_what_another_server_deletes_or_archives_is_seen(
    store: PostgresStore, other: PostgresStore
) -> None:
    pen = Pen(other)
    await pen.write(count=2)
    assert await store.head(SCOPE) == pen.head
    row = ArchivedObject(SCOPE, "one", pen.head.incarnation, b"\1" * 32, 100, 2, 0, False, 1)
    await other.archives.reserve(row)
    gone = await other.archives.move(pen.head, row)
    assert gone.archived == "one"
    assert await store.head(SCOPE) == gone
    await other.delete(SCOPE, expected_revision=None, cascade=False)
    assert await store.head(SCOPE) is None
    again = Pen(other)
    await again.write(count=1)
    assert await store.head(SCOPE) == again.head


async def test_a_commit_without_a_name_is_read_each_time(
    store: PostgresStore, other: PostgresStore
) -> None:
    """An earlier version made it: nothing tells two of its states apart."""
    pen = Pen(other)
    usual = pen.next(count=1)
    pen.head = replace(usual.head, commit_id=b"")
    await other.commit(replace(usual, head=pen.head))
    first = await store.head(SCOPE)
    assert first == pen.head
    assert await store.head(SCOPE) is not first


async def test_sessions_that_share_a_home_are_told_apart(
    store: PostgresStore, other: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (head_lookups, keys, transactions, writes):
        monkeypatch.setattr(module, "home", lambda scope: 7)
    one, two = (Pen(other, SCOPE._replace(session=name)) for name in ("one", "two"))
    none = SCOPE._replace(session="none")
    await one.write(count=1)
    await two.write(count=1)

    async def heads(*scopes: Scope) -> list[Any]:
        return list(await asyncio.gather(*map(store.head, scopes)))

    assert await heads(one.scope) == [one.head]
    assert await heads(none) == [None]
    assert await heads(one.scope, two.scope, none) == [one.head, two.head, None]
    for pen in (one, two):
        await pen.write(count=1)
        assert await heads(one.scope) == [one.head]
        assert await heads(none, two.scope) == [None, two.head]
        assert await heads(two.scope, one.scope, none) == [two.head, one.head, None]
    await other.delete(two.scope, expected_revision=None, cascade=False)
    assert await heads(one.scope, two.scope) == [one.head, None]
    assert await heads(two.scope) == [None]
    assert await heads(one.scope) == [one.head]


async def test_a_connection_that_ended_is_replaced(
    store: PostgresStore, other: PostgresStore
) -> None:
    pen = Pen(store)
    await pen.write(count=1)
    assert await store.head(SCOPE) == pen.head
    line = store._heads._line
    assert line is not None
    ended = await other._connections.read(
        lambda db: db.value(f"SELECT pg_terminate_backend({line.get_server_pid()}, 5000)")
    )
    assert ended
    for _ in range(2):
        assert await store.head(SCOPE) == pen.head
    assert store._heads._line not in (None, line)


async def test_without_a_connection_of_its_own_it_asks_by_the_pools(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    pen = Pen(store)
    await pen.write(count=1)

    async def none() -> Any:
        raise OSError("too many")

    with monkeypatch.context() as patched:
        patched.setattr(store._connections, "connect", none)
        assert await store.head(SCOPE) == pen.head
        assert store._heads._line is None
    monkeypatch.setattr(store._heads, "_connects_at", 0.0)
    assert await store.head(SCOPE) == pen.head
    assert store._heads._line is not None


async def test_a_database_that_hangs_is_told_of_and_left(
    store: PostgresStore, other: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks hears that it cannot be used now, and the next one asks by another connection."""
    monkeypatch.setattr(head_lookups, "_HANGS_S", 0.3)
    pen = Pen(store)
    await pen.write(count=1)
    assert await store.head(SCOPE) == pen.head
    async with other._connections.lent() as db:
        transaction = db.raw.transaction()
        await transaction.start()
        await db.raw.execute("LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreUnavailable, match="did not answer in time"):
            await store.head(SCOPE)
        await transaction.rollback()
    assert await store.head(SCOPE) == pen.head


async def test_who_gives_up_waiting_stops_nobody_else(store: PostgresStore) -> None:
    pen = Pen(store)
    await pen.write(count=1)
    asking = [asyncio.ensure_future(store.head(SCOPE)) for _ in range(4)]
    await asyncio.sleep(0)
    asking[0].cancel()
    asking[2].cancel()
    assert await asking[1] == await asking[3] == pen.head
    with suppress(asyncio.CancelledError):
        await asking[0]


async def test_what_was_not_used_for_longest_is_forgotten(store: PostgresStore) -> None:
    known = KnownHeads(capacity=2)
    pens = [Pen(store, SCOPE._replace(session=f"s{n}")) for n in range(3)]
    for pen in pens:
        await pen.write(count=1)
        known.put(pen.scope, pen.head)
        assert known.of(pens[0].scope) is pens[0].head
    assert len(known) == 2
    assert known.of(pens[1].scope) is None
    known.put(pens[0].scope, None)
    assert known.of(pens[0].scope) is None
