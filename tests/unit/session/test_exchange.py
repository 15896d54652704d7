"""What happens on one server is told on another over the same store: to those who watch, to those
who wait, and to what is held in memory of choices and quotas."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from contextengine_server.fairness.quota import Quota
from contextengine_server.runtime.exchange import Exchange
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.telemetry.events import GAP, Event, Watched
from contextengine_server.wiring.replicas import exchange_of
from tests.unit.commands.house import S1, TENANT, Server, scope

WATCHED = Watched(TENANT)


class Pair:
    """Two servers that tell each other what happens when a test says so."""

    def __init__(self, server: Server, other: Server) -> None:
        self.server, self.other = server, other
        names = ("one", "two")
        self.exchanges = [
            exchange_of(one.core, one.tenants, name)
            for one, name in zip((server, other), names, strict=True)
        ]

    async def open(self) -> None:
        """From now on they share what happens."""
        for exchange in self.exchanges:
            await exchange.start()
            await halted(exchange)

    async def tell(self) -> None:
        """Whatever happened is told to both."""
        for exchange in (*self.exchanges, *self.exchanges):
            await exchange.swap()


async def halted(exchange: Exchange) -> None:
    """Does nothing by itself, so that a test decides when."""
    task, exchange._task = exchange._task, None
    if task is not None:
        task.cancel()


@pytest.fixture
async def pair(server: Server, other: Server) -> Pair:
    made = Pair(server, other)
    await made.open()
    return made


async def seen(server: Server, resume: str = "", watched: Watched = WATCHED) -> list[Event]:
    """What a watcher sees at once."""
    found: list[Event] = []
    watch = server.core.events.watch(watched, resume)
    assert isinstance(watch, AsyncIterator)
    try:
        async with asyncio.timeout(0.05):
            async for event in watch:
                found.append(event)
    except TimeoutError:
        pass
    return found


def names(events: list[Event]) -> list[str]:
    return [event.name for event in events]


async def test_a_watcher_sees_what_happens_on_another_server(pair: Pair) -> None:
    start = pair.other.core.events.position(pair.other.core.events._next - 1)
    await pair.server.ingest("a")
    await pair.other.ingest("b")
    await pair.tell()
    here, there = await seen(pair.server, start), await seen(pair.other, start)
    assert here == there
    assert names(here) == ["session:created", "session:ingested", "session:ingested"]
    assert [event.revision for event in here] == [1, 1, 2]


async def test_a_position_means_the_same_everywhere(pair: Pair) -> None:
    start = pair.server.core.events.position(pair.server.core.events._next - 1)
    for text in "abc":
        await pair.server.ingest(text)
    await pair.tell()
    first = (await seen(pair.server, start))[:2]
    behind = pair.server.core.events.position(first[-1].number)
    assert [event.revision for event in await seen(pair.other, behind)] == [2, 3]


async def test_a_position_that_was_not_told_here_yet_is_waited_for(pair: Pair) -> None:
    await pair.server.ingest("a")
    await pair.exchanges[0].swap()
    ahead = pair.server.core.events.position(pair.server.core.events._next - 1)
    assert await seen(pair.other, ahead) == []
    await pair.server.ingest("b")
    await pair.tell()
    assert names(await seen(pair.other, ahead)) == ["session:ingested"]


async def test_a_server_that_starts_holds_what_happened_lately(
    pair: Pair, serve: object, server: Server
) -> None:
    start = server.core.events.position(server.core.events._next - 1)
    await server.ingest("a")
    await pair.tell()
    late = await serve()  # type: ignore[operator]
    exchange = exchange_of(late.core, late.tenants, "three")
    await exchange.start()
    await halted(exchange)
    found = await seen(late, start)
    assert names(found) == [GAP, "session:created", "session:ingested"] or names(found) == [
        "session:created",
        "session:ingested",
    ]
    behind = late.core.events.position(found[-2].number)
    assert names(await seen(late, behind)) == ["session:ingested"]


async def test_what_was_let_go_before_it_was_heard_is_a_gap(pair: Pair) -> None:
    start = pair.other.core.events.position(pair.other.core.events._next - 1)
    await pair.server.ingest("a")
    await pair.exchanges[0].swap()
    await pair.server.store.feed.trim(-1_000)
    await pair.server.ingest("b")
    await pair.tell()
    assert names(await seen(pair.other, start)) == [GAP, "session:ingested"]


async def test_more_than_can_be_kept_is_a_gap_for_all(pair: Pair) -> None:
    start = pair.other.core.events.position(pair.other.core.events._next - 1)
    pair.server.core.events._capacity = 2
    for text in "abcd":
        await pair.server.ingest(text)
    await pair.tell()
    assert names(await seen(pair.other, start))[0] == GAP


@pytest.mark.parametrize("body", [b"\xc1", b"", b"\x92\x01\x02"])
async def test_what_cannot_be_read_is_a_gap_and_keeps_nothing_from_being_heard(
    pair: Pair, body: bytes
) -> None:
    """A server of another version may have told it."""
    start = pair.other.core.events.position(pair.other.core.events._next - 1)
    await pair.server.store.feed.post(1, body)
    await pair.server.ingest("a")
    await pair.tell()
    assert names(await seen(pair.other, start)) == [GAP, "session:created", "session:ingested"]


async def test_what_could_not_be_told_is_told_later(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = pair.other.core.events.position(pair.other.core.events._next - 1)

    async def away(*_: object) -> None:
        raise StoreUnavailable("away")

    await pair.server.ingest("a")
    with monkeypatch.context() as broken:
        broken.setattr(pair.server.store.feed, "post", away)
        with pytest.raises(StoreUnavailable):
            await pair.exchanges[0].swap()
    await pair.server.ingest("b")
    await pair.tell()
    assert names(await seen(pair.other, start)) == [
        "session:created",
        "session:ingested",
        "session:ingested",
    ]


async def test_what_an_operator_chose_elsewhere_serves_here(pair: Pair) -> None:
    await pair.other.ingest("a")
    assert (await pair.other.assemble()).engine.id == "dag"
    await pair.server.engines.assign.run(scope(), "legacy", {}, clear=False)
    await pair.tell()
    assert (await pair.other.assemble()).engine.id == "legacy"
    await pair.server.engines.assign.run(scope(), "", {}, clear=True)
    await pair.tell()
    assert (await pair.other.assemble()).engine.id == "dag"


async def test_a_choice_that_was_missed_serves_once_the_gap_shows(pair: Pair) -> None:
    await pair.other.ingest("a")
    await pair.other.engines.assign.run(scope(), "pipeline", {}, clear=False)
    await pair.tell()
    await pair.server.engines.assign.run(scope(), "legacy", {}, clear=False)
    await pair.exchanges[0].swap()
    await pair.server.store.feed.trim(-1_000)
    await pair.server.ingest("b")
    await pair.tell()
    assert (await pair.other.assemble()).engine.id == "legacy"


async def test_a_quota_that_was_set_elsewhere_is_in_force_here(pair: Pair) -> None:
    await pair.server.tenants.put(TENANT, Quota(calls=3))
    assert pair.other.tenants.standing(TENANT).in_force.calls is None
    await pair.tell()
    assert pair.other.tenants.standing(TENANT).in_force.calls == 3
    await pair.other.tenants.put(TENANT, None)
    await pair.tell()
    assert pair.server.tenants.standing(TENANT).in_force.calls is None


async def test_who_waits_for_a_revision_is_woken_by_another_server(pair: Pair) -> None:
    await pair.server.ingest("a")
    waiting = asyncio.create_task(pair.other.core.sessions.reached(scope(S1), 2))
    await asyncio.sleep(0)
    await pair.server.ingest("b")
    await pair.tell()
    async with asyncio.timeout(0.5):  # it would look by itself after a second
        await waiting


async def test_servers_tell_each_other_by_themselves(server: Server, other: Server) -> None:
    exchanges = [
        exchange_of(one.core, one.tenants, name) for one, name in ((server, "one"), (other, "two"))
    ]
    for exchange in exchanges:
        await exchange.start()
    watch = other.core.events.watch(WATCHED)
    waiting = asyncio.ensure_future(anext(watch))
    await server.ingest("a")
    async with asyncio.timeout(30):
        assert (await waiting).name == "session:created"
    for exchange in exchanges:
        await exchange.stop()
