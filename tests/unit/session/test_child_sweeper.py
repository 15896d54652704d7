"""What becomes of children whose time has passed, while nobody asks."""

from __future__ import annotations

import asyncio

import pytest

from contextengine_server.commands.subagents.prepare_subagent_spawn import SpawnRequest
from contextengine_server.errors import InvalidField, RowNotFound, SpawnEnded
from contextengine_server.session import children as child_sessions
from contextengine_server.session.address import Address, Ref
from contextengine_server.session.children import ChildSweeper
from contextengine_server.store.rows import Spawn
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import AGENT, S1, TENANT, Server, scope

from .sweeping import eventually, running

HOUR_MS = 3_600_000
S2, CHILD = Ref(AGENT, "s2"), Ref(AGENT, "child")


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
