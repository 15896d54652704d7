"""CallTool: a tool runs for the model, and what the model did wrong is an answer."""

from __future__ import annotations

import orjson
import pytest

from contextengine_server.commands.subagents.prepare_subagent_spawn import Grant
from contextengine_server.errors import RowNotFound, SessionNotFound
from contextengine_server.session.address import Ref
from tests.unit.commands.house import S1, TENANT, Server, long, scope
from tests.unit.commands.subagents.test_prepare_subagent_spawn import CHILD, prepare


async def test_what_was_compacted_is_brought_back(server: Server) -> None:
    await server.talk(1, 6)
    await server.compact(4_000)
    row = (await server.store.summaries(scope()))[0]
    arguments = orjson.dumps({"summary_id": row.id})
    done = await server.context.call_tool.run(TENANT, S1, "ctx_expand", arguments, "")
    assert not done.answer.is_error, done.answer.json
    assert b"u1 saw file0." in done.answer.json
    assert done.tokens == server.counter.count_text(done.answer.json.decode())
    told = server.events()[-1]
    assert told.attributes["tool"] == "ctx_expand"
    assert told.counts["recovered"] == done.answer.recovered > 0


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("none", b"{}"), ("ctx_expand", b"not json"), ("ctx_inspect", b'{"unknown": 1}')],
)
async def test_what_the_model_did_wrong_is_answered(
    server: Server, name: str, arguments: bytes
) -> None:
    await server.ingest("a")
    done = await server.context.call_tool.run(TENANT, S1, name, arguments, "")
    assert done.answer.is_error
    assert "error" in orjson.loads(done.answer.json)
    assert not [event for event in server.events() if "tool" in event.attributes]


async def test_what_a_grant_does_not_reach_is_answered_and_not_counted(server: Server) -> None:
    await server.talk(1, 6)
    token = (await prepare(server, fork=False, grant=Grant(tokens=1))).token
    arguments = orjson.dumps({"sequences": [1]})
    done = await server.context.call_tool.run(TENANT, CHILD, "ctx_expand", arguments, token)
    assert done.answer.is_error
    spawn = await server.store.spawns.find(TENANT, token)
    assert spawn is not None
    assert spawn.used_tokens == 0


async def test_what_is_not_there(server: Server) -> None:
    with pytest.raises(SessionNotFound):
        await server.context.call_tool.run(TENANT, S1, "ctx_search", b'{"query": "a"}', "")
    await server.ingest("a")
    with pytest.raises(RowNotFound):
        await server.context.call_tool.run(TENANT, S1, "ctx_search", b"{}", "none")


async def test_a_grant_whose_time_is_over_is_answered(server: Server) -> None:
    """The model hears of it and goes on; its call does not fail under it."""
    await server.talk(1, 6)
    timed = Grant(tokens=1_000, expire_ms=server.clock.ms + 1_000)
    token = (await prepare(server, fork=False, grant=timed)).token
    arguments = orjson.dumps({"sequences": [1]})
    done = await server.context.call_tool.run(TENANT, CHILD, "ctx_expand", arguments, token)
    assert not done.answer.is_error
    assert server.core.meters.tokens_granted.value == done.tokens > 0
    server.clock.advance(1)
    done = await server.context.call_tool.run(TENANT, CHILD, "ctx_expand", arguments, token)
    assert done.answer.is_error
    assert orjson.loads(done.answer.json)["error"]["code"] == "grant_expired"
    assert done.tokens > 0


async def test_a_page_is_as_long_as_its_grant_pays_for_with_all_that_is_around_it(
    server: Server,
) -> None:
    """The JSON around messages costs as well."""
    await server.ingest(*(long(f"m{at}", 60) for at in range(40)))
    token = (await prepare(server, fork=False, grant=Grant(tokens=1_500))).token
    arguments = orjson.dumps({"sequences": list(range(1, 41))})
    done = await server.context.call_tool.run(TENANT, CHILD, "ctx_expand", arguments, token)
    assert not done.answer.is_error, done.answer.json
    assert 0 < done.answer.recovered < 40
    assert done.tokens == server.counter.count_text(done.answer.json.decode()) <= 1_500
    spawn = await server.store.spawns.find(TENANT, token)
    assert spawn is not None
    assert spawn.used_tokens == done.tokens


async def test_a_search_is_answered_whole_under_a_grant_or_not_at_all(server: Server) -> None:
    server.indexer.start()
    await server.ingest(*(f"m{at} the zebra eats" for at in range(40)))
    arguments = orjson.dumps({"query": "zebra", "limit": 20})
    whole = await server.context.call_tool.run(TENANT, S1, "ctx_search", arguments, "")
    token = (await prepare(server, fork=False, grant=Grant(tokens=whole.tokens * 2))).token
    done = await server.context.call_tool.run(TENANT, CHILD, "ctx_search", arguments, token)
    assert orjson.loads(done.answer.json)["hits"]
    few = (await prepare(server, FEW, fork=False, grant=Grant(tokens=200))).token
    done = await server.context.call_tool.run(TENANT, FEW, "ctx_search", arguments, few)
    assert orjson.loads(done.answer.json)["error"]["code"] == "grant_spent"


FEW = Ref(CHILD.agent, "few")
