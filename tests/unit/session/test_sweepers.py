"""What ends while nobody asks: sessions that nobody wrote to for long, and children whose time has
passed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from contextengine_server.commands.subagents.prepare_subagent_spawn import SpawnRequest
from contextengine_server.errors import InvalidField, RowNotFound, SpawnEnded
from contextengine_server.session import children as child_sessions
from contextengine_server.session import sweeper as sweeper_module
from contextengine_server.session.address import Address, Ref
from contextengine_server.session.children import ChildSweeper
from contextengine_server.session.lifecycle import Lifecycle
from contextengine_server.session.session import Session
from contextengine_server.session.sweeper import IdleSweeper, Lead, Sweeper
from contextengine_server.store.rows import Spawn
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import AGENT, S1, TENANT, Server, scope

HOUR_MS = 3_600_000
S2, CHILD = Ref(AGENT, "s2"), Ref(AGENT, "child")


def idle_sweeper(server: Server, idle_ms: int = HOUR_MS) -> IdleSweeper:
    return IdleSweeper(server.core.sessions, server.store, server.core.lifecycle, idle_ms)


@asynccontextmanager
async def running(sweeper: IdleSweeper | ChildSweeper) -> AsyncIterator[None]:
    sweeper.start()
    try:
        yield
    finally:
        await sweeper.stop()


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await holds():
            await asyncio.sleep(0.005)


# Idle sessions.


async def test_what_nobody_wrote_to_for_longer_is_ended(server: Server) -> None:
    await server.ingest("a")
    server.clock.ms += HOUR_MS // 2
    await server.ingest("b", ref=S2)
    sweeper = idle_sweeper(server)
    server.clock.ms += HOUR_MS // 2
    await sweeper.sweep()
    assert not (await server.head()).ended
    server.clock.ms += 1
    await sweeper.sweep()
    assert (await server.head()).ended
    assert not (await server.head(S2)).ended
    (told,) = server.events("session:ended")
    assert (told.session, told.revision) == ("s1", 2)


async def test_what_is_ended_is_not_ended_again(server: Server) -> None:
    await server.ingest("a")
    server.clock.ms += HOUR_MS + 1
    for _ in range(2):
        await idle_sweeper(server).sweep()
        server.clock.ms += HOUR_MS
    assert (await server.head()).revision == 2


async def test_a_later_write_opens_it_again(server: Server) -> None:
    await server.ingest("a")
    server.clock.ms += HOUR_MS + 1
    await idle_sweeper(server).sweep()
    await server.ingest("b")
    assert not (await server.head()).ended
    await idle_sweeper(server).sweep()
    assert not (await server.head()).ended


async def test_what_was_written_to_meanwhile_goes_on(server: Server, other: Server) -> None:
    """It was found idle, and is looked at again under its lock."""
    await server.ingest("a")
    server.clock.ms += HOUR_MS + 1
    found = server.store.idle_sessions

    async def find(before_ms: int, limit: int) -> object:
        heads = await found(before_ms, limit)
        await other.ingest("b")
        return heads

    server.store.idle_sessions = find  # type: ignore[method-assign, assignment]
    await idle_sweeper(server).sweep()
    assert not (await server.head()).ended


async def test_one_that_cannot_be_ended_keeps_no_other_from_it(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one's row may be damaged, say, and is found first by each sweep."""
    await server.ingest("a")
    await server.ingest("b", ref=S2)
    server.clock.ms += HOUR_MS + 1
    end = type(server.core.lifecycle).end

    async def failing(self: Lifecycle, session: Session, *more: Any) -> Any:
        if session.scope.session == "s1":
            raise ValueError("its state is no JSON")
        return await end(self, session, *more)

    monkeypatch.setattr(type(server.core.lifecycle), "end", failing)
    await idle_sweeper(server).sweep()
    assert (await server.head(S2)).ended
    assert not (await server.head()).ended


async def test_it_sweeps_while_the_server_runs(server: Server) -> None:
    await server.ingest("a")
    server.clock.ms += HOUR_MS + 1
    async with running(idle_sweeper(server, idle_ms=800)):

        async def ended() -> bool:
            return (await server.head()).ended

        await eventually(ended)
    await server.ingest("b")
    server.clock.ms += HOUR_MS
    await asyncio.sleep(0.3)
    assert not (await server.head()).ended  # it was stopped


async def test_a_sweep_that_fails_is_tried_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.ingest("a")
    server.clock.ms += HOUR_MS + 1
    sweeper = idle_sweeper(server, idle_ms=1)
    sweep, tried = sweeper.sweep, []

    async def fails_once() -> None:
        tried.append(1)
        if len(tried) == 1:
            raise RuntimeError("no store")
        await sweep()

    monkeypatch.setattr(sweeper, "sweep", fails_once)
    async with running(sweeper):

        async def ended() -> bool:
            return (await server.head()).ended

        await eventually(ended)


@pytest.mark.parametrize(
    ("idle_ms", "pause"), [(1, 0.2), (800, 0.2), (4_000, 1.0), (240_000, 60.0), (HOUR_MS, 60.0)]
)
async def test_it_looks_four_times_in_that_time_and_each_minute_at_least(
    server: Server, monkeypatch: pytest.MonkeyPatch, idle_ms: int, pause: float
) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.Event().wait()

    monkeypatch.setattr(sweeper_module, "asyncio", _Asyncio(sleep))
    async with running(idle_sweeper(server, idle_ms)):
        async with asyncio.timeout(30):
            while not pauses:
                await asyncio.sleep(0)
    assert pauses == [pause]


class _Asyncio:
    """asyncio with another sleep."""

    def __init__(self, sleep: Callable[[float], Awaitable[None]]) -> None:
        self.sleep = sleep

    def __getattr__(self, name: str) -> object:
        return getattr(asyncio, name)


async def test_what_was_never_started_is_stopped(server: Server) -> None:
    sweeper = idle_sweeper(server)
    await sweeper.stop()
    async with running(sweeper):
        pass
    await sweeper.stop()
    await ChildSweeper(server.core.children).stop()


# Children.


async def prepare(server: Server, child: Ref = CHILD, seconds: int = 60) -> Spawn:
    return await server.context.prepare_subagent_spawn.run(
        TENANT, SpawnRequest(S1, child, fork=True, ttl_ms=1000 * seconds)
    )


def address(ref: Ref) -> Address:
    return Address(scope(ref))


async def test_a_child_that_never_said_anything_goes_with_its_time(server: Server) -> None:
    await server.ingest("a")
    spawn = await prepare(server)
    server.clock.advance(59.999)
    assert await server.core.children.expire() == 0
    server.clock.advance(0.001)
    assert await server.core.children.expire() == 1
    assert await server.core.children.expire() == 0
    assert await server.store.head(scope(CHILD)) is None
    assert server.core.cache.find(scope(CHILD)) is None
    (told,) = server.events("subagent:expired")
    assert (told.agent, told.session) == (AGENT, "child")
    assert told.attributes == {
        "parent_agent": AGENT,
        "parent_session": "s1",
        "reason": "expired",
    }
    assert [event.session for event in server.events("session:deleted")] == ["child"]
    assert server.core.meters.subagents["expired"].value == 1
    with pytest.raises(SpawnEnded, match=r"spawn_token: is over \(expired\)") as refused:
        await server.core.children.live(TENANT, spawn.token)
    assert refused.value.metadata == {"why": "expired"}
    assert [one.field for one in refused.value.violations] == ["spawn_token"]


async def test_a_child_that_spoke_stays_when_its_time_has_passed(server: Server) -> None:
    await server.ingest("a")
    await prepare(server)
    await server.ingest("b", ref=CHILD)
    server.clock.advance(60)
    assert await server.core.children.expire() == 1
    assert await server.shown(ref=CHILD) == ["a", "b"]
    assert server.events("session:deleted") == []


async def test_a_token_whose_time_has_passed_is_over_before_it_is_swept(server: Server) -> None:
    await server.ingest("a")
    spawn = await prepare(server)
    server.clock.advance(59.999)
    assert (await server.core.children.live(TENANT, spawn.token)).token == spawn.token
    server.clock.advance(0.001)
    with pytest.raises(SpawnEnded):
        await server.core.children.live(TENANT, spawn.token)
    assert len(server.events("subagent:expired")) == 1
    assert await server.core.children.expire() == 0


async def test_a_token_that_nobody_gave_is_not_known(server: Server) -> None:
    await server.ingest("a")
    spawn = await prepare(server)
    for tenant, token in ((TENANT, "none"), ("another", spawn.token)):
        with pytest.raises(RowNotFound, match="spawn_token: is not known") as refused:
            await server.core.children.live(tenant, token)
        assert [one.field for one in refused.value.violations] == ["spawn_token"]


async def test_a_child_starts_once(server: Server) -> None:
    await server.ingest("a")
    spawn = await prepare(server)
    for _ in range(2):
        await server.core.children.start(address(CHILD), spawn.token)
    (told,) = server.events("subagent:started")
    assert told.attributes == {"parent_agent": AGENT, "parent_session": "s1"}
    assert (told.agent, told.session) == (AGENT, "child")
    assert server.core.meters.subagents["started"].value == 1
    assert (await server.core.children.live(TENANT, spawn.token)).started


async def test_a_token_is_for_its_own_child(server: Server) -> None:
    await server.ingest("a")
    spawn = await prepare(server)
    with pytest.raises(InvalidField, match="spawn_token: is another child's"):
        await server.core.children.start(address(S2), spawn.token)
    assert not (await server.core.children.live(TENANT, spawn.token)).started


async def test_a_child_that_ended_does_not_start(server: Server) -> None:
    await server.ingest("a")
    spawn = await prepare(server)
    ended = await server.core.children.end(spawn, "completed", take_back=False)
    assert ended is not None
    assert await server.core.children.end(spawn, "completed", take_back=False) is None
    with pytest.raises(SpawnEnded, match="completed"):
        await server.core.children.start(address(CHILD), spawn.token)
    (told,) = server.events("subagent:ended")
    assert told.attributes["reason"] == "completed"
    assert server.core.meters.subagents["ended"].value == 1


async def test_what_is_taken_back_leaves_nothing(server: Server) -> None:
    await server.ingest("a")
    spawn = await prepare(server)
    await server.assemble(ref=CHILD)
    ended = await server.core.children.end(spawn, child_sessions.ROLLED_BACK, take_back=True)
    assert ended is not None
    assert ended.erased
    assert len(server.events("subagent:rolled_back")) == 1
    assert server.core.meters.subagents["rolled_back"].value == 1
    assert server.core.cache.find(scope(CHILD)) is None
    assert await server.shown(ref=CHILD) == []


async def test_what_is_not_taken_back_stays(server: Server) -> None:
    await server.ingest("a")
    spawn = await prepare(server)
    ended = await server.core.children.end(spawn, child_sessions.ROLLED_BACK, take_back=False)
    assert ended is not None
    assert not ended.erased
    assert await server.shown(ref=CHILD) == ["a"]


async def test_a_session_is_named_by_its_id_or_a_key_it_has(server: Server) -> None:
    await server.ingest("a", ref=Ref(AGENT, "c1", "chat"))
    child = scope(Ref(AGENT, "c1"))
    names = server.core.children.names
    newer = address(Ref(AGENT, "c2"))
    assert await names(Address(child), Ref(AGENT, "c1"), child)
    assert await names(newer, Ref(AGENT, key="chat"), child)
    assert not await names(newer, Ref(AGENT, key="another"), child)
    assert not await names(newer, Ref("another", key="chat"), child)
    assert not await names(newer, Ref(AGENT, "c2", "chat"), child)
    gone = scope(Ref(AGENT, "gone"))
    assert not await names(newer, Ref(AGENT, key="chat"), gone)


async def test_children_are_swept_while_the_server_runs(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that are due, however many at once; a sweep that fails is tried again."""
    server = await serve()
    await server.ingest("a")
    for at in range(5):
        await prepare(server, Ref(AGENT, f"child{at}"))
    server.clock.advance(60)
    monkeypatch.setattr(child_sessions, "MAX_SWEEP", 2)
    monkeypatch.setattr(child_sessions, "SWEEP_S", 0.01)
    expire, fails = server.store.spawns.expire, [True]

    async def fails_once(now_ms: int, limit: int) -> object:
        if fails:
            fails.pop()
            raise RuntimeError("no store")
        return await expire(now_ms, limit)

    monkeypatch.setattr(server.store.spawns, "expire", fails_once)
    async with running(ChildSweeper(server.core.children)):

        async def over() -> bool:
            return len(server.events("subagent:expired")) == 5

        await eventually(over)
    await prepare(server)
    server.clock.advance(60)
    await asyncio.sleep(0.05)
    assert len(server.events("subagent:expired")) == 5  # it was stopped


async def test_all_that_are_due_are_swept_in_one_go(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.ingest("a")
    for at in range(5):
        await prepare(server, Ref(AGENT, f"child{at}"))
    server.clock.advance(60)
    monkeypatch.setattr(child_sessions, "MAX_SWEEP", 2)
    monkeypatch.setattr(child_sessions, "SWEEP_S", 3_600.0)
    async with running(ChildSweeper(server.core.children)):

        async def over() -> bool:
            return len(server.events("subagent:expired")) == 5

        await eventually(over)


async def test_a_session_is_ended_when_nobody_writes_to_it(server: Server) -> None:
    """Whoever writes holds its lock: the sweep waits for it."""
    await server.ingest("a")
    server.clock.ms += HOUR_MS + 1
    async with server.core.sessions.open(scope(), lock=True):
        sweeping = asyncio.create_task(idle_sweeper(server).sweep())
        for _ in range(50):
            await asyncio.sleep(0)
        assert not (await server.head()).ended
    await sweeping
    assert (await server.head()).ended


# One server of several.


async def test_one_server_sweeps_for_all(server: Server, other: Server) -> None:
    swept: list[str] = []

    class Counted(IdleSweeper):
        def __init__(self, server: Server, name: str) -> None:
            super().__init__(server.core.sessions, server.store, server.core.lifecycle, 1_000)
            self.name = name

        async def sweep(self) -> None:
            swept.append(self.name)

        def pause_s(self) -> float:
            return 0.01

    sweepers = [Counted(server, "one"), Counted(other, "two")]
    for sweeper, one in zip(sweepers, (server, other), strict=True):
        sweeper.start(Lead(one.store.leases, sweeper.name))

    async def often() -> bool:
        return len(swept) > 5

    await eventually(often)
    assert set(swept) == {"one"}
    await sweepers[0].stop()
    swept.clear()
    await eventually(often)
    assert set(swept) == {"two"}, "the other goes on at once where the first ends in good order"
    await sweepers[1].stop()


async def test_what_every_server_must_do_each_does(server: Server) -> None:
    class Own(Sweeper):
        topic, failure, at_once = "own", "failed", True
        swept = 0

        async def sweep(self) -> None:
            self.swept += 1

        def pause_s(self) -> float:
            return 0.01

    sweepers = [Own(), Own()]
    for name, sweeper in zip("ab", sweepers, strict=True):
        sweeper.start(Lead(server.store.leases, name))

    async def both() -> bool:
        return all(sweeper.swept > 1 for sweeper in sweepers)

    await eventually(both)
    for sweeper in sweepers:
        await sweeper.stop()
