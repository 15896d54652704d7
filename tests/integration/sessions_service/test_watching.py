"""Watch: what happens to sessions, in order, from now or from a position; what was missed is
said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from contextengine import AsyncClient, ContextEngineError
from contextengine import types as t
from contextengine.messages import assistant, user
from tests import postgres
from tests.integration.harness import BOB, PATIENCE_S, Clock, House, budget, ref

GAP = "watch:gap"


class Seen:
    """The events of a stream, as they come."""

    def __init__(self, stream) -> None:
        self.stream = stream
        self.events: list[t.WatchResponse] = []

    async def until(self, enough: Callable[[t.WatchResponse], bool]) -> list[t.WatchResponse]:
        """All events up to the first for which `enough` holds."""
        begun = len(self.events)
        async with asyncio.timeout(PATIENCE_S):
            async for event in self.stream:
                self.events.append(event)
                if enough(event):
                    return self.events[begun:]
        raise AssertionError("the stream ended")

    async def until_session(self, session: str) -> list[t.WatchResponse]:
        """All events up to the first of this session."""
        return await self.until(lambda event: event.session_id == session)


@asynccontextmanager
async def watching(house: House, client: AsyncClient | None = None, **more) -> AsyncIterator[Seen]:
    """A stream that is open: what happens from here on is seen."""
    async with (client or house.client).sessions.watch(**more) as stream:
        await stream._call.initial_metadata()
        yield Seen(stream)


def names(events: list[t.WatchResponse]) -> list[str]:
    return [event.name for event in events]


async def mark(house: House, name: str = "mark") -> None:
    """Something to wait for."""
    await house.client.bootstrap(ref(name))


async def test_a_life_in_events(clocked: House, clock: Clock) -> None:
    async with watching(clocked) as seen:
        client = clocked.client
        await client.ingest_batch(ref(), [user("one"), assistant("two")])
        clock.advance(5)
        rewind = t.RecordHostChangeRequest.Rewind(after_sequence=1)
        await client.record_host_change(ref(), rewind=rewind)
        await client.reset_session(ref())
        await client.end_session(ref())
        await client.engines.assign(scope=ref(), engine_id="legacy")
        await client.sessions.delete(ref())
        await mark(clocked)
        events = (await seen.until_session("mark"))[:-1]
    assert names(events) == [
        "session:created",
        "session:ingested",
        "session:rewound",
        "session:reset",
        "session:ended",
        "engine:assigned",
        "session:deleted",
    ]
    assert [event.revision for event in events] == [1, 1, 2, 3, 4, 0, 0]
    assert {(event.agent_id, event.session_id) for event in events} == {("agent", "s1")}
    assert events[1].counts["messages"] == 2
    assert events[2].counts["retired"] == 1
    assert [
        event.time.ToMilliseconds() - events[0].time.ToMilliseconds() for event in events[:3]
    ] == [
        0,
        0,
        5_000,
    ]


async def test_every_way_to_create_a_session_is_an_event(house: House) -> None:
    await house.client.ingest(ref("parent"), user("one"))
    async with watching(house, name_prefixes=["session:created"]) as seen:
        await house.client.ingest(ref("1"), user("one"))
        await house.client.bootstrap(ref("2"))
        await house.client.bootstrap(ref("3"), history=[user("one")])
        await house.client.bootstrap(ref("4"), continues=ref("parent"))
        await house.client.bootstrap(ref("5"), continues=ref("parent"), history=[user("one")])
        await house.client.update_model(ref("6"), model="gpt-5")
        await house.client.assemble(ref("7"), ingest=[user("one")])
        await house.client.after_turn(ref("8"), [user("one")])
        await house.client.sessions.import_session(ref("9"), [user("one")])
        await mark(house)
        events = await seen.until_session("mark")
    assert [event.session_id for event in events] == [*"123456789", "mark"]


async def test_from_now_on(house: House) -> None:
    await house.client.ingest(ref("before"), user("one"))
    async with watching(house) as seen:
        await mark(house)
        assert names(await seen.until_session("mark")) == ["session:created"]


async def test_only_what_is_watched(house: House) -> None:
    async with (
        watching(house, agent_id="agent") as of_agent,
        watching(house, agent_id="agent", session_id="s1") as of_session,
        watching(house, name_prefixes=["session:reset", "engine:"]) as of_names,
    ):
        for session in (ref("s1"), ref("s2"), ref("s1", agent="another")):
            await house.client.ingest(session, user("one"))
        await house.client.reset_session(ref("s1"))
        await house.client.engines.assign(scope=ref("s1"), engine_id="legacy")
        last = lambda event: event.name == "engine:assigned"  # noqa: E731
        assert {e.agent_id for e in await of_agent.until(last)} == {"agent"}
        assert {(e.agent_id, e.session_id) for e in await of_session.until(last)} == {
            ("agent", "s1")
        }
        assert names(await of_names.until(last)) == ["session:reset", "engine:assigned"]


async def test_resuming_where_one_stopped(house: House) -> None:
    async with watching(house) as seen:
        for number in range(10):
            await mark(house, f"s{number}")
        events = await seen.until_session("s9")
    assert len({event.position for event in events}) == 10
    for at in (0, 4, 9):
        await mark(house, f"after-{at}")
        async with watching(house, resume_position=events[at].position) as resumed:
            again = await resumed.until_session(f"after-{at}")
        assert again[: 9 - at] == events[at + 1 :], "each of them once, in the same order"
        assert GAP not in names(again)


@pytest.mark.skipif(postgres.INSISTS, reason="servers that share a store share positions")
async def test_a_restart_is_a_gap(house: House) -> None:
    async with watching(house) as seen:
        await mark(house, "before")
        (event,) = await seen.until_session("before")
    await house.restart()
    async with watching(house, resume_position=event.position) as resumed:
        await mark(house, "after")
        gap, after = await resumed.until_session("after")
    assert gap.name == GAP
    assert (gap.agent_id, gap.session_id, gap.revision) == ("", "", 0)
    assert after.name == "session:created"
    async with watching(house, resume_position=gap.position) as resumed:
        assert await resumed.until_session("after") == [after], "a gap is a place to resume from"


@pytest.mark.skipif(not postgres.INSISTS, reason="a server alone has its events in memory")
async def test_a_restart_is_no_gap_where_events_are_shared(house: House) -> None:
    async with watching(house) as seen:
        await mark(house, "before")
        (event,) = await seen.until_session("before")
        await mark(house, "missed")
        await seen.until_session("missed")
    await house.restart()
    async with watching(house, resume_position=event.position) as resumed:
        await mark(house, "after")
        found = await resumed.until_session("after")
    assert [one.session_id for one in found] == ["missed", "after"]


async def test_too_much_for_the_memory_is_a_gap(house: House) -> None:
    events = house.app.core.events
    async with watching(house) as seen:
        await mark(house, "before")
        (event,) = await seen.until_session("before")
    for number in range(10_001):
        events.emit("session:ingested", "default", "agent", f"s{number}")
    async with watching(house, resume_position=event.position) as resumed:
        first, *rest = await resumed.until_session("s10000")
    assert first.name == GAP
    # The oldest go an eighth at a time; of what is left nothing is missing.
    assert [other.session_id for other in rest] == [f"s{n}" for n in range(10_001)][-len(rest) :]
    assert 8_000 < len(rest) <= 10_000


async def test_a_watcher_that_falls_behind_is_told(house: House) -> None:
    events = house.app.core.events
    async with watching(house) as seen:
        await mark(house, "before")
        await seen.until_session("before")
        for number in range(10_500):  # at once: the stream cannot follow meanwhile
            events.emit("session:ingested", "default", "agent", f"s{number}")
        said = await seen.until_session("s10499")
    assert names(said).count(GAP) == 1
    shown = [int(event.session_id[1:]) for event in said if event.name != GAP]
    assert shown == list(range(10_500 - len(shown), 10_500))


@pytest.mark.parametrize(
    "position",
    [
        "x",
        ".",
        "..",
        "1",
        "life.-1",
        "life.1",
        "\x00",
        "٣.٣",
        "9" * 5_000,
        "x." + "9" * 5_000,
        "A" * 1_000_000,
    ],
    ids=lambda text: text[:10],
)
async def test_a_position_that_never_was_is_a_gap(house: House, position: str) -> None:
    async with watching(house, resume_position=position) as seen:
        await mark(house)
        assert names(await seen.until_session("mark")) == [GAP, "session:created"]


async def test_a_position_of_this_life_that_is_still_to_come_is_a_gap(house: House) -> None:
    life = house.app.core.events.life
    for number in ("99", "9" * 5_000, "9" * 18):
        async with watching(house, resume_position=f"{life}.{number}") as seen:
            await mark(house, f"mark-{number[:3]}-{len(number)}")
            assert names(await seen.until_session(f"mark-{number[:3]}-{len(number)}"))[0] == GAP


async def test_tenants_see_only_their_own(guarded: House) -> None:
    bob = guarded.client_of(BOB)
    async with watching(guarded, bob) as seen:
        await guarded.client.ingest(ref(), user("of alice"))
        await guarded.client.engines.assign(engine_id="legacy")
        await bob.ingest(ref("bobs"), user("of bob"))
        assert names(await seen.until(lambda event: event.name == "session:ingested")) == [
            "session:created",
            "session:ingested",
        ]
    async with watching(guarded, bob, resume_position="from the start") as seen:
        events = await seen.until(lambda event: event.name == "session:ingested")
    assert {event.session_id for event in events if event.name != GAP} == {"bobs"}


async def test_no_event_carries_text(house: House) -> None:
    async with watching(house) as seen:
        await house.client.ingest_batch(
            ref(), [user("swordfish " * 200), assistant("swordfish " * 200), user("x")]
        )
        change = t.RecordHostChangeRequest.HostCompaction(
            first_sequence=1, last_sequence=2, summary="swordfish"
        )
        await house.client.record_host_change(ref(), compacted=change)
        await mark(house)
        events = await seen.until_session("mark")
    assert len(events) > 2
    assert "swordfish" not in str(events)


async def test_a_drain_ends_the_stream_and_says_so(house: House) -> None:
    async with watching(house) as seen:
        ending = asyncio.create_task(seen.until_session("never"))
        await house.app.server.drain(PATIENCE_S)
        with pytest.raises(ContextEngineError) as caught:
            await ending
    assert (caught.value.code.name, caught.value.reason) == ("UNAVAILABLE", "DRAINING")


async def test_many_watchers_see_the_same(house: House) -> None:
    async def watch() -> list[t.WatchResponse]:
        async with watching(house) as seen:
            ready.append(None)
            return await seen.until_session("mark")

    ready: list[None] = []
    watchers = [asyncio.create_task(watch()) for _ in range(20)]
    while len(ready) < 20:
        await asyncio.sleep(0.01)
    await asyncio.gather(*(house.client.ingest(ref(f"s{n}"), user("x")) for n in range(20)))
    await mark(house)
    first, *others = await asyncio.gather(*watchers)
    assert len(first) == 41
    assert all(other == first for other in others)


async def test_how_a_list_begins_is_told_once_and_again_when_it_does_not_fit(house: House) -> None:
    client, session = house.client, ref("budgets")
    async with watching(house, name_prefixes=["context:"]) as seen:
        for number in range(30):
            await client.ingest(session, user(f"message {number} " + "word " * 40))
        for _ in range(3):
            await client.assemble(session, budget=budget(100_000))
        await client.assemble(session, budget=budget(700))
        await client.assemble(session, budget=budget(1))
        await client.assemble(
            session, live=t.LiveList(messages=[user("x")]), budget=budget(100_000)
        )
        await client.compact(session, force=True, budget=budget(1_000))
        events = await seen.until(lambda event: event.name == "context:dag_compacted")
    told = [(event.name, event.attributes.get("verdict", "")) for event in events[:-1]]
    assert told == [
        ("context:budget_computed", "fits"),
        ("context:budget_computed", "fits"),
        ("context:evicted", ""),
        ("context:budget_computed", "over_budget"),
        ("context:evicted", ""),
        ("context:overflow", ""),
        ("context:budget_computed", "degraded"),
    ]
    first, second, evicted = events[:3]
    assert (first.counts["items"], first.counts["available"]) == (30, 100_000)
    assert second.counts["tokens"] + evicted.counts["tokens"] == first.counts["tokens"]
    assert "message" not in str(events[:-1]).replace("message_tokens", "")
