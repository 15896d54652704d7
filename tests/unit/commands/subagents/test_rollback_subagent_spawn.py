"""RollbackSubagentSpawn: a preparation is taken back."""

from __future__ import annotations

import pytest

from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.errors import InvalidField, SpawnEnded
from contextengine_server.session.address import Ref
from tests.unit.commands.house import AGENT, S1, TENANT, Server, scope
from tests.unit.commands.subagents.test_prepare_subagent_spawn import CHILD, prepare


async def test_a_child_that_said_nothing_is_gone(server: Server) -> None:
    await server.ingest("a")
    token = (await prepare(server)).token
    assert await server.context.rollback_subagent_spawn.run(TENANT, token, S1)
    assert await server.store.head(scope(CHILD)) is None
    assert [event.name for event in server.events("subagent:rolled")] == ["subagent:rolled_back"]
    assert not await server.context.rollback_subagent_spawn.run(TENANT, token, S1)
    with pytest.raises(SpawnEnded):
        await server.context.bootstrap.run(TENANT, CHILD, Introduction(), spawn_token=token)


async def test_the_key_that_the_child_took_names_what_it_named(server: Server) -> None:
    await server.ingest("a")
    await server.ingest("before", ref=Ref(AGENT, "older", "chat"))
    spawn = await prepare(server, Ref(AGENT, "child", "chat"))
    assert spawn.previous_session == "older"
    assert await server.store.current_session(TENANT, AGENT, "chat") == "child"
    await server.context.rollback_subagent_spawn.run(TENANT, spawn.token, S1)
    assert await server.store.current_session(TENANT, AGENT, "chat") == "older"
    assert (await prepare(server)).previous_session == ""


async def test_what_a_child_said_stays(server: Server) -> None:
    await server.ingest("a")
    token = (await prepare(server)).token
    await server.ingest("b", ref=CHILD)
    assert await server.context.rollback_subagent_spawn.run(TENANT, token, S1)
    assert await server.stored(CHILD) == ["b"]


async def test_anothers_parent(server: Server) -> None:
    await server.ingest("a")
    await server.ingest("b", ref=Ref(AGENT, "s2"))
    token = (await prepare(server)).token
    with pytest.raises(InvalidField):
        await server.context.rollback_subagent_spawn.run(TENANT, token, Ref(AGENT, "s2"))
    assert await server.store.head(scope(CHILD)) is not None
    assert not await server.context.rollback_subagent_spawn.run(TENANT, "none", S1)
    assert not await server.context.rollback_subagent_spawn.run("another", token, S1)


async def test_a_child_that_is_taken_back_while_it_begins(server: Server) -> None:
    with pytest.raises(SpawnEnded) as refused:
        await server.context.bootstrap.run(TENANT, CHILD, Introduction(spawned=True))
    assert refused.value.text == "spawn_token: the child was taken back: prepare another"
    assert refused.value.metadata == {"why": "rolled_back"}
    assert await server.store.head(scope(CHILD)) is None
