"""Law 8 over random lives: tenants and agents that share every session id and key never see a row
of each other.

Whatever a caller writes names its writer. Whatever any rpc answers, as bytes, must name nobody
else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest
from google.protobuf.message import Message

from contextengine import AsyncClient, ContextEngineError, assistant, tool_call, tool_result, user
from contextengine import types as t
from tests.integration.harness import ALICE, BOB, House, budget, ref

OPERATIONS = 250
AGENTS, SESSIONS, KEYS = ("a1", "a2"), ("s1", "s2"), ("main", "side")
NAMED = re.compile(rb"writer-(\w+)-(\w+)-(\w+)-end")

Writer = tuple[str, str, str]
"""Tenant, agent, session."""


class Life:
    """One caller's random doings in one session; every reply is looked through."""

    def __init__(self, house: House, random: Random) -> None:
        self.house, self.random = house, random
        self.clients: dict[str, AsyncClient] = {
            "alice": house.client_of(ALICE),
            "bob": house.client_of(BOB),
        }
        self.stored: dict[Writer, int] = {}
        self.seen = 0

    def say(self, writer: Writer, words: int = 40) -> list[t.Message]:
        """A turn that names its writer in every place that text can be in."""
        name = f"writer-{'-'.join(writer)}-end"
        number = self.random.randrange(10**9)
        said = f"{name} secret plan number {number}: " + "we agreed to ship the parser " * (
            words // 5
        )
        call = tool_call(f"c{number}", "read_file", {"path": name})
        return [
            user(said),
            assistant(f"{name} reads", tool_calls=[call]),
            tool_result(f"c{number}", said),
        ]

    async def step(self) -> None:
        """One random call by a random caller."""
        tenant = self.random.choice(("alice", "bob"))
        agent, session = self.random.choice(AGENTS), self.random.choice(SESSIONS)
        does = self.random.choices(list(DOINGS), [weight for weight, _ in DOINGS.values()])[0]
        writer = (tenant, agent, session)
        try:
            reply = await DOINGS[does][1](self, self.clients[tenant], writer)
        except ContextEngineError as error:
            self.look(writer, does, str(error).encode())
            return
        for one in reply if isinstance(reply, list) else [reply]:
            self.look(
                writer, does, one.SerializeToString() if isinstance(one, Message) else bytes(one)
            )

    def look(self, writer: Writer, does: str, answer: bytes) -> None:
        """Nobody else is named. Sessions of one agent may continue each other, so they may know
        each other's text."""
        named = {
            tuple(part.decode() for part in match.groups()) for match in NAMED.finditer(answer)
        }
        self.seen += len(named)
        others = {other for other in named if other[:2] != writer[:2]}
        assert not others, f"{does} told {writer} of {others}"


async def _write(life: Life, client: AsyncClient, writer: Writer) -> Any:
    life.stored[writer] = life.stored.get(writer, 0) + 3
    return await client.ingest_batch(_ref(writer), life.say(writer))


async def _assemble(life: Life, client: AsyncClient, writer: Writer) -> Any:
    tokens = life.random.choice((300, 2_000, 100_000))
    return await client.assemble(
        _ref(writer),
        ingest=life.say(writer),
        budget=budget(tokens),
        explain=life.random.random() < 0.3,
    )


async def _live(life: Life, client: AsyncClient, writer: Writer) -> Any:
    live = t.LiveList(messages=life.say(writer), store_new=life.random.random() < 0.5)
    return await client.assemble(_ref(writer), live=live, budget=budget(2_000))


async def _by_key(life: Life, client: AsyncClient, writer: Writer) -> Any:
    key = life.random.choice(KEYS)
    named = ref(life.random.choice(("", writer[2])), agent=writer[1], key=key)
    return await client.assemble(named, ingest=life.say(writer), budget=budget(4_000))


async def _search(life: Life, client: AsyncClient, writer: Writer) -> Any:
    return await client.recall.search(
        _ref(writer), life.random.choice(("secret plan", "parser", "writer"))
    )


async def _tool(life: Life, client: AsyncClient, writer: Writer) -> Any:
    given: dict[str, object] = {"query": "secret plan"}
    name = life.random.choice(("ctx_search", "ctx_expand", "ctx_inspect"))
    if name != "ctx_search":
        found = await client.assemble(
            _ref(life.random.choice(list(life.stored) or [writer])), budget=budget(500)
        )
        ids = [item.origin.summary_id for item in found.items if item.origin.summary_id]
        given = {"summary_id": ids[0] if ids else "s1-00000000"}
    return await client.call_tool(
        _ref(writer), name=name, arguments_json=json.dumps(given).encode()
    )


async def _expand(life: Life, client: AsyncClient, writer: Writer) -> Any:
    return await client.recall.expand(
        _ref(writer), sequences=[life.random.randrange(1, 40) for _ in range(5)]
    )


async def _export(life: Life, client: AsyncClient, writer: Writer) -> Any:
    return [reply async for reply in client.sessions.export(_ref(writer), include_retired=True)]


async def _continue(life: Life, client: AsyncClient, writer: Writer) -> Any:
    fresh = ref(f"c{life.random.randrange(10**6)}", agent=writer[1])
    return [
        await client.bootstrap(fresh, continues=_ref(writer)),
        await client.assemble(fresh, budget=budget(4_000)),
        await client.recall.search(fresh, "secret plan"),
    ]


def _ref(writer: Writer) -> t.SessionRef:
    return ref(writer[2], agent=writer[1])


DOINGS: dict[str, tuple[int, Callable[[Life, AsyncClient, Writer], Awaitable[Any]]]] = {
    "Ingest": (6, _write),
    "Assemble": (6, _assemble),
    "Assemble of a list": (3, _live),
    "Assemble by key": (3, _by_key),
    "Compact": (4, lambda life, client, w: client.compact(_ref(w), force=True, budget=budget(500))),
    "Search": (4, _search),
    "CallTool": (3, _tool),
    "Expand": (3, _expand),
    "Export": (3, _export),
    "a continued session": (2, _continue),
    "GetStatus": (1, lambda life, client, w: client.get_status(_ref(w))),
    "List": (1, lambda life, client, w: client.sessions.list(agent_id=w[1])),
    "ResetSession": (1, lambda life, client, w: client.reset_session(_ref(w))),
    "Delete": (1, lambda life, client, w: client.sessions.delete(_ref(w), cascade=True)),
}


@pytest.mark.parametrize("seed", range(3))
async def test_nobody_is_told_of_another(guarded: House, seed: int) -> None:
    life = Life(guarded, Random(seed))
    for number in range(OPERATIONS):
        await life.step()
        if number % 50 == 49:
            guarded.forget()
    assert life.seen > OPERATIONS / 4, "hardly anything was told at all"
