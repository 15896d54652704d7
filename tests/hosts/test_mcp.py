"""The MCP server: what a host's model finds, and what it hears while there is nothing to find."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from contextengine import AsyncClient, assistant, user
from contextengine_mcp.away import GLANCE_S, Away
from contextengine_mcp.names import Names
from contextengine_mcp.patience import PATIENCE_S
from contextengine_mcp.server import STATUS, server
from tests.hosts.wire import wire
from tests.integration.harness import House, house, ref

TALK = [user("The door code is 4711.", id="u1"), assistant("Noted.", id="a1")]


def served(client: AsyncClient, names: Names, away: Away | None = None) -> Any:
    """away: what is remembered of the service. None: nothing."""
    return server(client, names, away or Away("", lambda: None, Path(os.devnull)))


def text(result: Any) -> str:
    return str(result.content[0].text)


async def asked(house: House, names: Names, tool: str, meta: Any = None, **given: Any) -> Any:
    async with Client(served(house.client, names)) as host:
        return await host.call_tool(tool, given, meta=meta)


@pytest.fixture
async def home(tmp_path: Path) -> Any:
    async with house(tmp_path) as opened:
        await opened.client.ingest_batch(ref("thread-1", agent="codex"), TALK)
        yield opened


async def test_the_tools_are_those_of_the_engine_and_the_status(home: House) -> None:
    async with Client(served(home.client, Names("codex", "thread-1"))) as host:
        listed = await host.list_tools()
    offered = (await home.client.list_tools(ref("thread-1", agent="codex"))).tools
    assert [tool.name for tool in listed.tools] == [*(tool.name for tool in offered), STATUS]
    schemas = [tool.input_schema for tool in listed.tools[:-1]]
    assert schemas == [json.loads(tool.input_schema_json) for tool in offered]


async def test_a_call_is_about_the_thread_that_the_host_names(home: House) -> None:
    names = Names("codex", session_key="/home/me/project")
    found = await asked(home, names, "ctx_search", {"threadId": "thread-1"}, query="door code")
    assert not found.is_error
    assert "4711" in text(found)
    status = json.loads(text(await asked(home, names, STATUS, {"threadId": "thread-1"})))
    assert (status["session_id"], status["messages"], status["engine"]) == ("thread-1", 2, "dag")


async def test_a_session_of_the_command_line_wins_and_else_it_is_the_keys(home: House) -> None:
    named = Names("codex", "thread-1", "/project")
    assert "4711" in text(
        await asked(home, named, "ctx_search", {"threadId": "other"}, query="door code")
    )
    keyed = ref("thread-2", agent="codex", key="/project")
    await home.client.ingest(keyed, user("The gate code is 1234.", id="u"))
    of_key = Names("codex", session_key="/project")
    assert "1234" in text(await asked(home, of_key, "ctx_search", query="gate code"))


async def test_a_session_that_does_not_exist_yet_has_tools_and_says_so(home: House) -> None:
    names = Names("codex", "nobody")
    async with Client(served(home.client, names)) as host:
        assert len((await host.list_tools()).tools) > 1
        answer = await host.call_tool(STATUS, {})
    assert answer.is_error
    assert json.loads(text(answer))["error"]["code"] == "session_not_found"


async def test_a_bad_argument_is_an_error_that_a_model_can_mend(home: House) -> None:
    answer = await asked(home, Names("codex", "thread-1"), "ctx_search", query="")
    assert answer.is_error
    assert "query" in text(answer)


async def test_a_dead_service_stops_no_host() -> None:
    async with (
        AsyncClient("127.0.0.1:1", retry_for=0) as nobody,
        Client(served(nobody, Names("codex", "s"))) as host,
    ):
        assert [tool.name for tool in (await host.list_tools()).tools] == [STATUS]
        answer = await host.call_tool("ctx_search", {"query": "door"})
    assert answer.is_error
    assert "error" in json.loads(text(answer))


async def test_a_service_that_hangs_is_waited_for_once_and_one_that_works_is_not_hurried(
    home: House, tmp_path: Path
) -> None:
    away = Away("", lambda: None, tmp_path)
    given = {"query": "door code"}
    async with (
        wire(home.app.address) as way,
        AsyncClient(way.address, retry_for=0, breaker=True) as client,
        Client(served(client, Names("codex", "thread-1"), away)) as host,
    ):
        # Longer than it is waited for before it is asked, twice over.
        way.slow = {"CallTool": 2.5 * PATIENCE_S / 2}
        assert "4711" in text(await host.call_tool("ctx_search", given))
        assert [name for name, _ in way.taken().calls].count("List") == 2
        way.hangs = True
        assert (await host.call_tool("ctx_search", given)).is_error
        (call, _), (asked, bound) = way.taken().calls
        assert (call, asked) == ("CallTool", "List")
        assert bound <= PATIENCE_S / 2
        assert away.known, "and hooks know it"
        assert (await host.call_tool("ctx_search", given)).is_error
        assert not way.taken().calls
    # A process that does not know it yet has only a glance for it.
    async with (
        wire(home.app.address) as way,
        AsyncClient(way.address, retry_for=0, breaker=True) as client,
        Client(served(client, Names("codex", "thread-1"), away)) as host,
    ):
        way.hangs = True
        assert len((await host.list_tools()).tools) == 1
        ((asked, bound),) = way.taken().calls
        assert asked == "List"
        assert bound <= GLANCE_S


async def test_the_command_serves_on_its_streams(home: House) -> None:
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "contextengine_mcp.command", "--agent", "codex", "--address", home.app.address],
        env={"CLAUDE_CODE_SESSION_ID": "thread-1", "PYTHONPATH": ":".join(sys.path)},
    )
    async with Client(stdio_client(command)) as host:
        assert "4711" in text(await host.call_tool("ctx_search", {"query": "door code"}))
