"""EndSubagent: a child and its session are over."""

from __future__ import annotations

import pytest

from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.errors import SpawnEnded
from contextengine_server.session.address import Ref
from contextengine_server.session.children import COMPLETED
from tests.unit.commands.house import AGENT, TENANT, Server, scope
from tests.unit.commands.subagents.test_prepare_subagent_spawn import CHILD, prepare


async def started(server: Server) -> str:
    await server.ingest("a")
    token = (await prepare(server)).token
    await server.context.bootstrap.run(TENANT, CHILD, Introduction(), spawn_token=token)
    return token


@pytest.mark.parametrize("named", [True, False])
async def test_a_child_that_is_done(server: Server, named: bool) -> None:
    token = await started(server)
    await server.ingest("b", ref=CHILD)
    assert await server.context.end_subagent.run(TENANT, CHILD, COMPLETED, token if named else "")
    assert (await server.head(CHILD)).ended
    assert await server.stored(CHILD) == ["b"]
    assert await server.store.spawns.live_children(scope()) == 0
    assert not await server.context.end_subagent.run(TENANT, CHILD, COMPLETED, token)
    with pytest.raises(SpawnEnded):
        await server.context.bootstrap.run(TENANT, CHILD, Introduction(), spawn_token=token)


async def test_a_child_that_failed_and_said_nothing_is_gone(server: Server) -> None:
    token = await started(server)
    assert await server.context.end_subagent.run(TENANT, CHILD, "failed", token)
    assert await server.store.head(scope(CHILD)) is None


async def test_a_child_that_is_done_and_said_nothing_stays(server: Server) -> None:
    token = await started(server)
    assert await server.context.end_subagent.run(TENANT, CHILD, COMPLETED, token)
    assert (await server.head(CHILD)).ended


async def test_the_token_has_the_last_word(server: Server) -> None:
    token = await started(server)
    await server.ingest("b", ref=Ref(AGENT, "s2"))
    assert not await server.context.end_subagent.run(TENANT, Ref(AGENT, "s2"), COMPLETED, token)
    assert not (await server.head(Ref(AGENT, "s2"))).ended
    assert not await server.context.end_subagent.run(TENANT, CHILD, COMPLETED, "none")
    assert not (await server.head(CHILD)).ended


async def test_a_session_that_nobody_prepared_ends_too(server: Server) -> None:
    await server.ingest("a")
    assert await server.context.end_subagent.run(TENANT, Ref(AGENT, "s1"), COMPLETED, "")
    assert (await server.head()).ended
    assert not await server.context.end_subagent.run(TENANT, Ref(AGENT, "none"), COMPLETED, "")


async def test_a_child_that_ends_while_it_starts(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever ends it may be another server: what the store says then is what the child hears."""
    await server.ingest("a")
    token = (await prepare(server)).token
    start = server.store.spawns.start

    async def ended_meanwhile(tenant: str, which: str, now_ms: int) -> bool:
        await server.context.end_subagent.run(TENANT, CHILD, COMPLETED, token)
        return await start(tenant, which, now_ms)

    monkeypatch.setattr(server.store.spawns, "start", ended_meanwhile)
    with pytest.raises(SpawnEnded):
        await server.context.bootstrap.run(TENANT, CHILD, Introduction(), spawn_token=token)
