"""The tool that finds deferred tools: which sessions have it, and what is remembered of it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from contextengine_proto.v1.budget_pb2 import ToolDefinition
from contextengine_server.errors import SessionNotFound
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import S1, TENANT, Server, scope

TOOLS = [ToolDefinition(name=f"mcp__git__{name}", description=name) for name in ("log", "blame")]
QUERY = orjson.dumps({"query": "log"})


DEFERS: dict[str, Any] = {"usage.tool_deferral.engines": ["dag"]}


@pytest.fixture
async def deferring(serve: Serve) -> Server:
    return await serve(**DEFERS)


async def discovered(server: Server) -> tuple[str, ...]:
    async with server.core.sessions.open(scope()) as session:
        return session.state.discovered


async def test_what_is_found_is_remembered(deferring: Server) -> None:
    revision = await deferring.ingest("a")
    call = deferring.context.call_tool.run
    done = await call(TENANT, S1, "discover_tools", QUERY, "", TOOLS)
    assert [one["name"] for one in orjson.loads(done.answer.json)["tools"]] == ["mcp__git__log"]
    assert done.tokens == deferring.counter.count_text(done.answer.json.decode())
    assert await discovered(deferring) == ("mcp__git__log",)
    head = await deferring.store.head(scope())
    assert head is not None
    assert head.revision == revision + 1


async def test_it_is_found_and_not_remembered_where_nothing_is_noted(deferring: Server) -> None:
    await deferring.ingest("a")
    call = deferring.context.call_tool.run
    done = await call(TENANT, S1, "discover_tools", QUERY, "", TOOLS, noted=False)
    assert not done.answer.is_error
    assert await discovered(deferring) == ()


async def test_a_lost_race_forgets_nothing(deferring: Server, serve: Serve) -> None:
    await deferring.ingest("a")
    other = await serve(**DEFERS)

    async def another() -> None:
        query = orjson.dumps({"query": "blame"})
        await other.context.call_tool.run(TENANT, S1, "discover_tools", query, "", TOOLS)

    deferring.store.before_commit.append(another)
    await deferring.context.call_tool.run(TENANT, S1, "discover_tools", QUERY, "", TOOLS)
    assert await discovered(deferring) == ("mcp__git__blame", "mcp__git__log")


async def test_no_session(deferring: Server) -> None:
    with pytest.raises(SessionNotFound):
        await deferring.context.call_tool.run(TENANT, S1, "discover_tools", QUERY, "", TOOLS)


async def test_an_engine_that_defers_nothing_has_no_such_tool(server: Server) -> None:
    await server.ingest("a")
    done = await server.context.call_tool.run(TENANT, S1, "discover_tools", QUERY, "", TOOLS)
    assert orjson.loads(done.answer.json)["error"]["code"] == "unknown_tool"
