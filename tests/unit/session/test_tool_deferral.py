"""Which definitions a session is shown, what they are counted for, and what a model is told that
looks for the others."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from contextengine_proto.v1.budget_pb2 import ToolDefinition
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.session.assembly.assembly import AssembleCall
from contextengine_server.session.assembly.budget import BudgetSpec
from contextengine_server.session.session import Session
from contextengine_server.session.state import SessionState
from contextengine_server.session.usage import tools as tools_module
from contextengine_server.session.usage.tools import (
    MAX_DISCOVERED,
    Discovery,
    ToolDeferral,
    with_discovered,
)
from contextengine_server.usage.deferral import DeferralRules
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import S1, TENANT, Server, incoming, scope, spoken, user
from tests.unit.commands.house import assistant as said

SCHEMA = b'{"type":"object"}'
TEXT = "Shows the history of commits. "
NARROW = BudgetSpec(window=2_000)
"""Of which a tenth is less than what the definitions take."""


def tool(name: str, times: int = 20, **more: Any) -> ToolDefinition:
    given = {"description": f"{name}: {TEXT}" * times, "input_schema_json": SCHEMA, **more}
    return ToolDefinition(name=name, **given)


TOOLS = [tool("write"), tool("mcp__git__log"), tool("read"), tool("mcp__git__blame")]


@pytest.fixture
async def server(serve: Serve) -> Server:
    server = await serve(
        **{"usage.tool_deferral.engines": ["dag"], "usage.tool_deferral.always": ["write"]}
    )
    await server.ingest("a")
    return server


def deferral(server: Server) -> ToolDeferral:
    return server.core.usage.tools


def call(**more: Any) -> AssembleCall:
    return AssembleCall(TENANT, S1, **{"tools": TOOLS, "budget": NARROW, **more})


async def session_of(server: Server) -> Session:
    async with server.core.sessions.open(scope(), None) as session:
        return session


async def shown(server: Server, **more: Any) -> list[str]:
    made = await deferral(server).apply(call(**more), await session_of(server))
    return [one.name for one in made.tools]


async def found(
    server: Server, query: object, given: list[ToolDefinition] | None = None
) -> tuple[Discovery, dict[str, Any]]:
    arguments = query if isinstance(query, bytes) else orjson.dumps({"query": query})
    done = await deferral(server).discover(await session_of(server), given or [], arguments)
    return done, orjson.loads(done.json)


async def test_what_does_not_fit_stands_behind_the_tool_that_finds_it(server: Server) -> None:
    made = await deferral(server).apply(call(), await session_of(server))
    assert [one.name for one in made.tools] == ["read", "discover_tools"]
    finder = made.tools[1]
    assert orjson.loads(finder.input_schema_json) == {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "What to find."}},
        "required": ["query"],
        "additionalProperties": False,
    }
    assert "git: mcp__git__blame, mcp__git__log" in finder.description
    assert made.tools[0] == TOOLS[2]

    def counted(one: ToolDefinition) -> int:
        texts = (one.name, one.description, one.input_schema_json.decode())
        return sum(map(server.counter.count_text, texts))

    sent = sum(map(counted, made.tools))
    # What the request counted by its texts is counted as it is shown.
    assert made.deferred_tokens == sum(map(counted, TOOLS)) - sent
    assert made.budget == NARROW
    asked = replace(NARROW, tools_sent=True, tools_counted=ReferenceTokens(7))
    again = await deferral(server).apply(call(budget=asked), await session_of(server))
    assert again.budget.tools_counted == sent
    wide = call(budget=BudgetSpec(window=10**6), tools=TOOLS[1:])
    assert await deferral(server).apply(wide, await session_of(server)) is wide


async def test_nothing_is_saved_where_the_finder_takes_more(server: Server) -> None:
    small = [ToolDefinition(name="write")]
    made = await deferral(server).apply(call(tools=small), await session_of(server))
    assert [one.name for one in made.tools] == ["discover_tools"]
    assert made.deferred_tokens == 0


@pytest.mark.parametrize("query", [b"[]", b"{", b"", b'{"query": 7}', b'{"query": " "}'])
async def test_what_asks_nothing_is_told_what_to_send(server: Server, query: bytes) -> None:
    done, told = await found(server, query, TOOLS)
    assert (done.is_error, done.names) == (True, ())
    assert told["error"] == {
        "code": "invalid_arguments",
        "message": "arguments: send an object with a query, which is a text",
    }


async def test_definitions_that_are_not_at_hand(server: Server) -> None:
    done, told = await found(server, "git")
    assert (done.is_error, done.names) == (True, ())
    assert told["error"] == {
        "code": "no_definitions",
        "message": "the definitions are not at hand: call this again after the next step",
    }
    await shown(server)
    done, told = await found(server, "git")
    assert (done.is_error, done.names) == (False, ("mcp__git__log", "mcp__git__blame"))


async def test_what_is_found_comes_with_its_definition(server: Server) -> None:
    odd = tool("mcp__odd__one", input_schema_json=b"\xff{")
    done, told = await found(server, "select:mcp__git__log,mcp__odd__one", [*TOOLS, odd])
    assert done.names == ("mcp__git__log", "mcp__odd__one")
    assert told == {
        "tools": [
            {
                "name": "mcp__git__log",
                "description": TOOLS[1].description,
                "input_schema": {"type": "object"},
            },
            {
                "name": "mcp__odd__one",
                "description": odd.description,
                "input_schema": "\ufffd{",
            },
        ]
    }
    bare = ToolDefinition(name="mcp__bare__one")
    _, told = await found(server, "mcp__bare", [bare])
    assert told["tools"] == [{"name": "mcp__bare__one", "description": "", "input_schema": {}}]


async def test_what_cannot_be_found_says_where_it_stands(server: Server) -> None:
    done, told = await found(server, "select:read", TOOLS)
    assert (done.names, done.is_error) == ((), False)
    assert told == {
        "tools": [],
        "note": "These are shown already and can be called: read",
    }
    _, told = await found(server, "weather", TOOLS)
    assert told == {
        "tools": [],
        "note": "Nothing was found: ask in other words, or for a server by its name.",
    }
    # What is always deferred is found, whether of a server or not.
    done, _ = await found(server, "select:write", TOOLS)
    assert done.names == ("write",)


async def test_tools_that_never_go_are_not_found_unless_they_always_do(serve: Serve) -> None:
    rules = {
        "usage.tool_deferral.engines": ["dag"],
        "usage.tool_deferral.never": ["mcp__git__log", "mcp__git__blame"],
        "usage.tool_deferral.always": ["mcp__git__blame"],
    }
    server = await serve(**rules)
    await server.ingest("a")
    done, told = await found(server, "select:mcp__git__log,mcp__git__blame", TOOLS)
    assert done.names == ("mcp__git__blame",)
    done, told = await found(server, "select:mcp__git__log", TOOLS)
    assert told["note"] == "These are shown already and can be called: mcp__git__log"


async def test_tools_that_were_called_lately_stay(server: Server) -> None:
    used = said("", "c", "c1")
    used.parts[0].tool_call.name = "mcp__git__blame"
    stays = ["read", "discover_tools", "mcp__git__blame"]
    assert await shown(server, ingest=incoming(used)) == stays
    assert await shown(server, live=[*spoken("a"), *incoming(used)]) == stays
    await server.context.ingest.run(TENANT, S1, incoming(used), None)
    assert await shown(server) == stays
    assert await shown(server, live=spoken("a", "b")) == stays[:2]
    await server.context.ingest.run(TENANT, S1, incoming(user("b", "b")), None)
    assert await shown(server) == stays
    await server.ingest(*(f"more{at}" for at in range(60)))
    assert await shown(server) == stays[:2]


@pytest.mark.parametrize(("place", "stays"), [(19, False), (20, True), (39, True)])
async def test_lately_is_so_many_messages_of_a_list(
    server: Server, place: int, stays: bool
) -> None:
    """Of forty the newest twenty, whoever keeps them."""
    used = said("", "c", "c1")
    used.parts[0].tool_call.name = "mcp__git__blame"
    listed = [user(f"m{at}", f"m{at}") for at in range(40)]
    listed[place] = used
    assert ("mcp__git__blame" in await shown(server, live=incoming(*listed))) is stays
    # One is stored already, and the newest comes along.
    *stored, newest = incoming(*listed[1:])
    await server.context.ingest.run(TENANT, S1, stored, None)
    assert ("mcp__git__blame" in await shown(server, ingest=[newest])) is stays
    await server.context.ingest.run(TENANT, S1, [newest], None)
    assert ("mcp__git__blame" in await shown(server)) is stays


async def test_what_was_found_is_remembered_once_and_no_more_than_so_much() -> None:
    state = with_discovered(DeferralRules(), SessionState(), ["a", "b"], 0)
    assert state.discovered == ("a", "b")
    assert with_discovered(DeferralRules(), state, ["b", "c"], 0).discovered == ("a", "b", "c")
    many = with_discovered(DeferralRules(), state, [f"t{at}" for at in range(MAX_DISCOVERED)], 0)
    assert len(many.discovered) == MAX_DISCOVERED
    assert many.discovered[0] == "t0"


async def test_more_definitions_than_the_shelf_holds_are_not_kept(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shown(server)
    taken = sum(one.ByteSize() for one in TOOLS)
    monkeypatch.setattr(tools_module, "SHELF_BYTES", taken // 2)
    other = [*TOOLS, tool("mcp__cal__add")]
    await shown(server, tools=other)
    done, _ = await found(server, "select:mcp__cal__add")
    assert done.names == ()
    done, _ = await found(server, "select:mcp__git__log")
    assert done.names == ("mcp__git__log",)  # of the assembly before
