"""A database that has no connection left, and one whose transactions refuse each other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from contextengine_server.context.scope import Scope
from contextengine_server.store.errors import RevisionConflict, StoreUnavailable
from contextengine_server.store.postgres.store import PostgresStore
from contextengine_server.testing.store.rows import Pen
from tests import postgres


@pytest.fixture
def crowded() -> Iterator[postgres.Cluster]:
    """A database of twelve connections, three of them for its own keeper."""
    postgres.require()
    made = postgres.Cluster(max_connections="12")
    made.start()
    yield made
    made.remove()


async def test_a_storm_of_connections_loses_and_doubles_nothing(crowded: postgres.Cluster) -> None:
    """Three servers want four times the connections that there are. Each commit is acknowledged or
    refused as something that passes, and all go on once the storm is over."""
    stores = [PostgresStore(crowded.url("postgres") + "?pool=12&wait=2") for _ in range(3)]
    for store in stores:
        await store.open()
    refused = 0

    async def write(number: int) -> None:
        nonlocal refused
        pen = Pen(stores[number % 3], Scope("acme", "main", f"s{number}"))
        while pen.head.last_sequence < 6:
            held, written = pen.head, pen.scope
            try:
                await pen.write(count=1)
                await pen.store.messages(written)
            except StoreUnavailable:
                refused += 1
                await asyncio.sleep(0.05)
                async with asyncio.timeout(30):
                    while True:
                        try:
                            pen.head = await pen.store.head(written) or held
                            break
                        except StoreUnavailable:
                            await asyncio.sleep(0.05)

    async with asyncio.timeout(100):
        await asyncio.gather(*(write(number) for number in range(45)))
    assert refused
    for number in range(45):
        rows = await stores[0].messages(Scope("acme", "main", f"s{number}"))
        assert [row.sequence for row in rows] == list(range(1, len(rows) + 1))
        assert len(rows) >= 6
    for store in stores:
        assert (await store.health()).ok
        await store.close()


async def test_serialization_failures_are_tried_again(crowded: postgres.Cluster) -> None:
    """Every transaction is serializable, and two servers write the same sessions."""
    crowded.execute("ALTER DATABASE postgres SET default_transaction_isolation = 'serializable'")
    stores = [PostgresStore(crowded.url("postgres") + "?pool=2&wait=5") for _ in range(2)]
    for store in stores:
        await store.open()
    scopes = [Scope("acme", "main", f"s{number}") for number in range(4)]
    for scope in scopes:
        await Pen(stores[0], scope).write(count=1)

    async def append(store: PostgresStore, scope: Scope) -> None:
        pen, left = Pen(store, scope), 5
        while left:
            head = await store.head(scope)
            assert head is not None
            pen.head = head
            try:
                await pen.write(count=1)
            except (RevisionConflict, StoreUnavailable):
                await asyncio.sleep(0.01)
            else:
                left -= 1

    def refused() -> bool:
        return "could not serialize access" in (crowded.root / "log").read_text()

    rounds = 0
    async with asyncio.timeout(60):
        while not refused():  # it takes two that meet
            await asyncio.gather(*(append(store, scope) for store in stores for scope in scopes))
            rounds += 1
    for scope in scopes:
        rows = await stores[0].messages(scope)
        assert [row.sequence for row in rows] == list(range(1, 10 * rounds + 2))
    for store in stores:
        await store.close()
