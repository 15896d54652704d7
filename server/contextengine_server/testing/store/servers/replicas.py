"""What servers over one database tell each other, and what one alone may do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from itertools import pairwise

from contextengine_server.context.scope import Scope
from contextengine_server.store.feed import Batch
from contextengine_server.store.protocols import Store

from ..case import StoreCase
from ..rows import SCOPE

NOWHERE = Scope("", "", "")


async def everything(store: Store, number: int = 0) -> list[Batch]:
    """All that is behind a number, read in small pieces."""
    found: list[Batch] = []
    while some := await store.feed.since(found[-1].last if found else number, 2):
        found += some
    return found


def in_order(batches: Sequence[Batch]) -> bool:
    """Whether each goes on where the one before it ends."""
    return all(left.last == right.before < right.first for left, right in pairwise(batches))


class ReplicaCases(StoreCase):
    """What servers tell each other, and which of them does what one alone should."""

    async def test_what_is_told_is_heard_by_all_in_one_order(
        self, store: Store, other: Store
    ) -> None:
        before = time.time_ns() // 1_000 - 600_000_000
        assert await everything(store) == []
        stores = [store, other]
        await asyncio.gather(*(stores[n % 2].feed.post(3, b"\x00%d" % n) for n in range(20)))
        heard = await everything(store)
        assert await everything(other) == heard
        assert sorted(batch.body for batch in heard) == sorted(b"\x00%d" % n for n in range(20))
        assert in_order(heard)
        assert {batch.count for batch in heard} == {3}
        assert heard[0].before == 0
        assert heard[0].first > before, "numbers begin with the clock"

    async def test_who_heard_some_hears_the_rest(self, store: Store, other: Store) -> None:
        for n in range(5):
            await store.feed.post(2, b"%d" % n)
        heard = await everything(other)
        assert await everything(other, heard[1].last) == heard[2:]
        assert await everything(other, heard[2].first) == heard[2:], "a part of one was heard"
        assert await everything(other, heard[-1].last) == []

    async def test_what_is_let_go_leaves_a_gap_that_shows(self, store: Store, other: Store) -> None:
        await store.feed.post(1, b"old")
        (old,) = await everything(other)
        await asyncio.sleep(0.05)
        await other.feed.trim(10)
        await store.feed.post(1, b"new")
        (new,) = await everything(other)
        assert (new.body, new.before) == (b"new", old.last)
        await store.feed.trim(60_000)
        assert await everything(store) == [new]

    async def test_who_waits_for_news_is_woken_or_not_for_long(
        self, store: Store, other: Store
    ) -> None:
        began = time.monotonic()
        await other.feed.posted(0.02)
        assert time.monotonic() - began < 10
        waiting = asyncio.create_task(other.feed.posted(1))
        await asyncio.sleep(0)
        await store.feed.post(1, b"news")
        async with asyncio.timeout(10):
            await waiting
        assert [batch.body for batch in await everything(other)] == [b"news"]

    async def test_one_at_a_time_holds_a_lease(self, store: Store, other: Store) -> None:
        takes = await asyncio.gather(
            *(
                (store, other)[n % 2].leases.take(SCOPE, "compaction", f"w{n}", 60_000)
                for n in range(6)
            )
        )
        assert sorted(takes) == [False] * 5 + [True]
        holder = f"w{takes.index(True)}"
        assert await other.leases.take(SCOPE, "compaction", holder, 60_000), "it is his already"
        assert await other.leases.take(SCOPE, "another", "x", 60_000)
        assert await other.leases.take(NOWHERE, "compaction", "x", 60_000)
        assert await other.leases.take(SCOPE._replace(session="s2"), "compaction", "x", 60_000)
        await other.leases.give_back(SCOPE, "compaction", "x")
        assert not await store.leases.take(SCOPE, "compaction", "x", 60_000)
        await store.leases.give_back(SCOPE, "compaction", holder)
        assert await store.leases.take(SCOPE, "compaction", "x", 60_000)

    async def test_who_holds_leases_of_a_kind(self, store: Store, other: Store) -> None:
        assert list(await other.leases.owners("server")) == []
        names = ["b", "B", "a", "é"]
        for name in names:
            assert await store.leases.take(NOWHERE._replace(session=name), "server", name, 60_000)
        assert await other.leases.take(SCOPE, "server", "a", 60_000), "the same one again"
        assert await other.leases.take(SCOPE, "another", "x", 60_000)
        assert list(await store.leases.owners("server")) == ["B", "a", "b", "é"]
        await other.leases.give_back(NOWHERE._replace(session="b"), "server", "b")
        assert await store.leases.take(NOWHERE._replace(session="c"), "server", "c", 30)
        await asyncio.sleep(0.1)
        assert list(await other.leases.owners("server")) == ["B", "a", "é"]

    async def test_a_lease_runs_out(self, store: Store, other: Store) -> None:
        assert await store.leases.take(SCOPE, "compaction", "a", 30)
        for _ in range(500):
            if await other.leases.take(SCOPE, "compaction", "b", 60_000):
                break
            await asyncio.sleep(0.02)
        assert not await store.leases.take(SCOPE, "compaction", "a", 60_000)
        await store.leases.give_back(SCOPE, "compaction", "a")
        assert not await store.leases.take(SCOPE, "compaction", "a", 60_000)
