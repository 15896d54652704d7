"""Inspect: what a summary covers."""

from __future__ import annotations

import pytest

from contextengine_server.commands.subagents.prepare_subagent_spawn import Grant
from contextengine_server.errors import BudgetSpent, RowNotFound, SessionNotFound
from tests.unit.commands.house import S1, TENANT, Server, scope
from tests.unit.commands.subagents.test_prepare_subagent_spawn import CHILD, prepare

KEY = "sk-" + "proj-" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6"


async def summary(server: Server) -> str:
    server.summarizer.says = f"what was said with {KEY}"
    await server.talk(1, 6)
    await server.compact(4_000)
    return (await server.store.summaries(scope()))[0].id


async def test_what_a_summary_covers_without_its_secrets(server: Server) -> None:
    done = await server.recall.inspect.run(TENANT, S1, await summary(server), "")
    row = (await server.store.summaries(scope()))[0]
    assert done.found.row == row
    assert sum(done.found.messages_by_role.values()) == row.message_count
    assert "what was said" in done.text
    assert KEY not in done.text


async def test_a_grant_pays_for_the_text(server: Server) -> None:
    name = await summary(server)
    token = (await prepare(server, fork=False, grant=Grant(tokens=1_000))).token
    done = await server.recall.inspect.run(TENANT, CHILD, name, token)
    spawn = await server.store.spawns.find(TENANT, token)
    assert spawn is not None
    assert spawn.used_tokens == server.counter.count_text(done.text)
    small = (await prepare(server, type(CHILD)(CHILD.agent, "b"), fork=False, grant=Grant(1))).token
    with pytest.raises(BudgetSpent):
        await server.recall.inspect.run(TENANT, type(CHILD)(CHILD.agent, "b"), name, small)


async def test_what_is_not_there(server: Server) -> None:
    with pytest.raises(SessionNotFound):
        await server.recall.inspect.run(TENANT, S1, "none", "")
    await server.ingest("a")
    with pytest.raises(RowNotFound):
        await server.recall.inspect.run(TENANT, S1, "none", "")
