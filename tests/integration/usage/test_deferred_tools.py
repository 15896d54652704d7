"""Deferred tools through a real channel: what the reply shows, how the rest is found, and that what
was found outlives compactions and restarts."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contextengine import types as t
from contextengine.messages import assistant, tool_call, tool_result, user
from tests.integration.harness import House, ref
from tests.integration.harness import house as living

SCHEMA = json.dumps({"type": "object", "properties": {"path": {"type": "string"}}}).encode()


def tool(name: str, description: str = "", server: str = "") -> t.ToolDefinition:
    return t.ToolDefinition(
        name=name,
        description=description or f"{name} does what it does. " * 20,
        input_schema_json=SCHEMA,
        mcp_server=server,
    )


TOOLS = [
    tool("write", "Writes."),
    tool("mcp__git__log", "Shows the history of commits. " * 40),
    tool("read", "Reads."),
    tool("mcp__git__blame"),
    tool("send", "Sends a letter. " * 80, server="mail"),
]
NARROW = t.Budget(window=t.WindowBudget(window=8_000, output_reserve=1_000, rot_buffer=0))
WIDE = t.Budget(window=t.WindowBudget(window=200_000))


@pytest.fixture
async def deferring(tmp_path: Path) -> AsyncIterator[House]:
    async with living(tmp_path, **{"usage.tool_deferral.engines": ["dag"]}) as house:
        await house.client.ingest(ref(), user("hello", id="m0"))
        yield house


async def visible(house: House, **more: Any) -> list[str]:
    said: dict[str, Any] = {"tools": TOOLS, "budget": NARROW, **more}
    return [one.name for one in (await house.client.assemble(ref(), **said)).visible_tools]


async def discover(house: House, query: str, **more: Any) -> dict[str, Any]:
    arguments = json.dumps({"query": query}).encode()
    reply = await house.client.call_tool(ref(), "discover_tools", arguments_json=arguments, **more)
    said: dict[str, Any] = json.loads(reply.result_json)
    assert reply.tokens > 0
    assert reply.is_error == ("error" in said)
    return said


async def test_above_a_tenth_of_the_window_tools_of_servers_are_deferred(deferring: House) -> None:
    assert await visible(deferring) == ["read", "write", "discover_tools"]
    assert await visible(deferring, budget=WIDE) == [one.name for one in TOOLS]


async def test_what_is_not_shown_is_not_paid_for(deferring: House) -> None:
    shown = await deferring.client.assemble(ref(), tools=TOOLS, budget=NARROW)
    sent = list(shown.visible_tools)
    again = await deferring.client.assemble(ref("other"), tools=sent, budget=NARROW)
    assert shown.budget.tools == again.budget.tools
    assert shown.metrics.layer_tokens["tool-deferral"] > 300
    by_count = t.Budget(window=t.WindowBudget(window=8_000, output_reserve=1_000, tool_tokens=777))
    told = await deferring.client.assemble(ref(), tools=TOOLS, budget=by_count)
    assert told.budget.tools == 777, "what the caller counted stands"


async def test_what_is_found_is_shown_from_then_on(deferring: House) -> None:
    await visible(deferring)
    found = await discover(deferring, "history of commits")
    assert [one["name"] for one in found["tools"]] == ["mcp__git__log"]
    assert found["tools"][0]["input_schema"] == json.loads(SCHEMA)
    assert await visible(deferring) == ["read", "write", "discover_tools", "mcp__git__log"]
    await discover(deferring, "mail")
    shown = ["read", "write", "discover_tools", "mcp__git__log", "send"]
    assert await visible(deferring) == shown
    await deferring.restart()
    assert await visible(deferring) == shown
    for number in range(19):
        turn = [user(f"q{number} " + "words " * 90), assistant("words " * 90)]
        await deferring.client.ingest_batch(ref(), turn)
    done = await deferring.client.compact(ref(), force=True, budget=t.Budget(message_tokens=2_000))
    assert done.compacted
    assert await visible(deferring) == shown


async def test_what_was_found_and_is_not_used_is_deferred_again(tmp_path: Path) -> None:
    """As Comis demotes tools that were not used for twenty turns. Messages are counted in steps of
    20, so one that was called stays for as long as that."""
    settings: dict[str, Any] = {
        "usage.tool_deferral.engines": ["dag"],
        "usage.tool_deferral.demote_after": 3,
        "usage.tool_deferral.recent_messages": 2,
    }
    async with living(tmp_path, **settings) as house:
        await house.client.ingest(ref(), user("hello", id="m0"))
        await visible(house)
        await discover(house, "mail")
        await house.client.ingest_batch(ref(), [user(f"more {n}") for n in range(2)])
        await discover(house, "history of commits")
        found = ["read", "write", "discover_tools", "send", "mcp__git__log"]
        assert await visible(house) == found
        assert await visible(house, ingest=[user("third", id="m3")]) == found
        assert await visible(house, ingest=[user("fourth", id="m4")]) == [*found[:3], found[4]]
        await house.restart()
        assert await visible(house) == [*found[:3], found[4]]
        # What is found again stands behind what was found since.
        await discover(house, "mail")
        assert await visible(house) == [*found[:3], "mcp__git__log", "send"]


async def test_definitions_come_with_the_call_or_with_the_assembly_before(
    deferring: House,
) -> None:
    assert (await discover(deferring, "git"))["error"]["code"] == "no_definitions"
    assert len((await discover(deferring, "git", tools=TOOLS))["tools"]) == 2
    await visible(deferring)
    assert len((await discover(deferring, "git"))["tools"]) == 2


async def test_tools_that_were_used_lately_stay(deferring: House) -> None:
    step = [
        assistant(tool_calls=[tool_call("c1", "mcp__git__blame")], id="a1"),
        tool_result("c1", "nobody", id="t1"),
    ]
    shown = ["read", "write", "discover_tools", "mcp__git__blame"]
    assert await visible(deferring, ingest=step) == shown
    await deferring.restart()
    assert await visible(deferring, ingest=step) == shown
    await deferring.client.ingest_batch(ref(), [user(f"more {n}") for n in range(19)])
    assert await visible(deferring) == shown
    await deferring.client.ingest_batch(ref(), [user(f"yet more {n}") for n in range(40)])
    assert await visible(deferring) == shown[:-1]
    assert await visible(deferring, live=t.LiveList(messages=step)) == shown


async def test_a_mistake_of_the_model_is_answered(deferring: House) -> None:
    await visible(deferring)
    for arguments in (b"", b"{}", b"[]", b"no json", b'{"query": 5}', b'{"query": " "}'):
        reply = await deferring.client.call_tool(ref(), "discover_tools", arguments_json=arguments)
        assert reply.is_error
        assert json.loads(reply.result_json)["error"]["code"] == "invalid_arguments"
    assert (await discover(deferring, "weather"))["tools"] == []
    said = await discover(deferring, "select:read")
    assert said["tools"] == []
    assert "read" in said["note"]


async def test_finding_twice_changes_nothing(deferring: House) -> None:
    await visible(deferring)
    await discover(deferring, "git")
    revision = (await deferring.client.get_status(ref())).revision
    await discover(deferring, "git")
    assert (await deferring.client.get_status(ref())).revision == revision


async def test_a_session_that_goes_on_knows_what_was_found(deferring: House) -> None:
    await visible(deferring)
    await discover(deferring, "mail")
    await deferring.client.bootstrap(ref("s2"), continues=ref())
    reply = await deferring.client.assemble(ref("s2"), tools=TOOLS, budget=NARROW)
    assert [one.name for one in reply.visible_tools][-1] == "send"


async def test_other_sessions_are_not_told(deferring: House) -> None:
    await visible(deferring)
    await discover(deferring, "mail")
    reply = await deferring.client.assemble(ref("s2"), tools=TOOLS, budget=NARROW)
    assert [one.name for one in reply.visible_tools] == ["read", "write", "discover_tools"]


async def test_only_tools_that_may_be_called_are_shown_and_counted(house: House) -> None:
    """For every engine, deferring or not."""
    one = await house.client.assemble(ref(), tools=TOOLS[:1])
    some = await house.client.assemble(ref(), tools=TOOLS, available_tools=["write", "absent"])
    assert list(some.visible_tools) == TOOLS[:1]
    assert some.budget.tools == one.budget.tools


async def test_other_engines_show_all(house: House) -> None:
    await house.client.ingest(ref(), user("hello"))
    assert await visible(house) == [one.name for one in TOOLS]
    reply = await house.client.call_tool(ref(), "discover_tools", arguments_json=b"{}")
    assert json.loads(reply.result_json)["error"]["code"] == "unknown_tool"


async def test_a_stateless_session_remembers_nothing(tmp_path: Path) -> None:
    async with living(tmp_path, **{"usage.tool_deferral.engines": ["*"]}) as house:
        await house.client.ingest(ref(), user("hello"))
        await house.restart(**{"sessions.stateless": [{"session": "s1"}]})
        await visible(house)
        before = await house.client.get_status(ref())
        assert len((await discover(house, "git"))["tools"]) == 2
        assert (await house.client.get_status(ref())).revision == before.revision
