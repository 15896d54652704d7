"""The definitions of tools that a model sees, and the tool that finds the others
(docs/semantics.md#deferred-tools)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import orjson
from cachetools import LRUCache
from msgspec.structs import replace

from contextengine_proto.v1 import budget_pb2, message_pb2
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.message import Role
from contextengine_server.context.scope import Scope
from contextengine_server.session.assembly.assembly import AssembleCall
from contextengine_server.session.assembly.budget import BudgetDefaults, target, window_source
from contextengine_server.session.encoding import Encoding
from contextengine_server.session.session import Session
from contextengine_server.session.state import SessionState
from contextengine_server.store.protocols import Store
from contextengine_server.usage.deferral import (
    DISCOVERY,
    DeferralRules,
    OfferedTool,
    ShownTools,
    described,
    server_of,
    shown,
)
from contextengine_server.usage.discovery import find
from contextengine_server.wire.entries import stored
from contextengine_server.wire.message import Incoming

MAX_DISCOVERED = 500
"""Names that a session remembers as found."""
SHELF_BYTES = 32 * 1024 * 1024
"""What the definitions of the newest assemblies may take."""

Definitions = Sequence[budget_pb2.ToolDefinition]


class Discovery(msgspec.Struct, frozen=True):
    """What a model found."""

    json: bytes
    names: tuple[str, ...]
    """Of the tools that it can call from now on."""
    is_error: bool = False


class ToolDeferral:
    """Decides what is shown of the definitions that a call brings.

    The definitions of the newest assembly of a session are kept in memory, for a CallTool that
    brings none: whatever process answers that, they come again with the next assembly.
    """

    finder = DISCOVERY
    """The name of the tool that finds deferred ones."""

    def __init__(
        self,
        rules: DeferralRules,
        engines: frozenset[str],
        store: Store,
        budgets: BudgetDefaults,
    ) -> None:
        self.rules, self.engines = rules, engines
        self._store, self._budgets = store, budgets
        self._counts: LRUCache[tuple[str, bytes], int] = LRUCache(8_192)
        self._shelf: LRUCache[Scope, Definitions] = LRUCache(SHELF_BYTES, _size)

    async def apply(self, call: AssembleCall, session: Session) -> AssembleCall:
        """The call with the definitions that are shown. What is not shown is not paid for."""
        aim = target(session.head, session.state, call.model, call.provider)
        tools = await self._offered(call.tools, session.encoding, aim.factor)
        used = await self._used(call, session)
        window, _, _ = window_source(call.budget, aim, self._budgets)
        turn = session.view.fold.turns + sum(one.traits.says for one in _new(call, session))
        found = kept_of(self.rules, session.state, turn)
        seen = shown(self.rules, tools, window, used, found)
        if sum(map(_bytes_of, call.tools)) <= SHELF_BYTES:
            self._shelf[session.scope] = call.tools
        if seen is None:
            return call
        finder = _finder(seen)
        definitions = [
            *(call.tools[tool.index] for tool in seen.before),
            finder,
            *(call.tools[tool.index] for tool in seen.behind),
        ]
        counted = sum([await self._count(one, session.encoding) for one in definitions])
        budget = call.budget
        if budget.tools_sent:
            budget = replace(budget, tools_counted=ReferenceTokens(counted))
        everything = sum([await self._count(one, session.encoding) for one in call.tools])
        saved = ReferenceTokens(max(0, everything - counted))
        return replace(call, tools=definitions, budget=budget, deferred_tokens=saved)

    async def discover(self, session: Session, given: Definitions, arguments: bytes) -> Discovery:
        """What a model finds. `given`: the definitions that there are; empty: those of the newest
        assembly."""
        query = _query(arguments)
        if query is None:
            return _refused(
                "invalid_arguments", "arguments: send an object with a query, which is a text"
            )
        definitions = given or self._shelf.get(session.scope, ())
        if not definitions:
            return _refused(
                "no_definitions",
                "the definitions are not at hand: call this again after the next step",
            )
        tools = await self._offered(definitions, session.encoding, 1.0)
        findable = [
            tool
            for tool in tools
            if (tool.server or tool.name in self.rules.always)
            and (tool.name not in self.rules.never or tool.name in self.rules.always)
        ]
        found = find(self.rules, findable, query)
        said: dict[str, Any] = {"tools": [_said(definitions[tool.index]) for tool in found]}
        if not found:
            there = find(self.rules, [tool for tool in tools if tool not in findable], query)
            said["note"] = (
                "Nothing was found: ask in other words, or for a server by its name."
                if not there
                else "These are shown already and can be called: "
                + ", ".join(tool.name for tool in there)
            )
        return Discovery(orjson.dumps(said), tuple(tool.name for tool in found))

    async def _offered(
        self, definitions: Definitions, encoding: Encoding, factor: float
    ) -> list[OfferedTool]:
        return [
            OfferedTool(
                one.name,
                one.description,
                server_of(one.name, one.mcp_server),
                round(await self._count(one, encoding) * factor),
                index,
            )
            for index, one in enumerate(definitions)
        ]

    async def _count(self, definition: budget_pb2.ToolDefinition, encoding: Encoding) -> int:
        """A definition's tokens in the reference encoding."""
        key = encoding.name, definition.SerializeToString(deterministic=True)
        known = self._counts.get(key)
        if known is None:
            schema = definition.input_schema_json.decode("utf-8", "replace")
            texts = (definition.name, definition.description, schema)
            known = self._counts[key] = await encoding.texts(texts)
        return known

    async def _used(self, call: AssembleCall, session: Session) -> set[str]:
        """The names of tools that were called lately: in the harness's own list, else in what is
        stored and what the call brings. Rows are read, not the view: it is the same after a
        compaction, and however much of the session is in memory."""
        if call.live is not None:
            first = self.rules.recent_from(len(call.live))
            return _called([message.body for message in call.live[first - 1 :]])
        head = session.head
        new = _new(call, session)
        last = head.last_sequence if head is not None else 0
        first = self.rules.recent_from(last + len(new))
        rows = await self._store.messages(session.scope, first) if head is not None else []
        bodies = [stored(row).body for row in rows if row.role == Role.ASSISTANT]
        return _called([*bodies, *(message.body for message in new)])


def kept_of(rules: DeferralRules, state: SessionState, turn: int) -> tuple[str, ...]:
    """The tools that are shown in a turn of the session because they were found, the first one
    first."""
    known = state.found_in
    return tuple(name for name in state.discovered if rules.keeps(known.get(name, turn), turn))


def with_discovered(
    rules: DeferralRules, state: SessionState, names: Sequence[str], turn: int
) -> SessionState:
    """The state that remembers these as found in a turn, behind those that are shown for that
    still. Those that are not any more are forgotten."""
    kept = kept_of(rules, state, turn)
    new = [name for name in names if name not in kept]
    if not new:
        return state
    found = (*kept, *new)[-MAX_DISCOVERED:]
    turns = {name: state.found_in[name] for name in kept if name in state.found_in}
    turns |= dict.fromkeys(new, turn)
    return replace(
        state, discovered=found, found_in={name: turns[name] for name in found if name in turns}
    )


def _new(call: AssembleCall, session: Session) -> list[Incoming]:
    """What the call brings that is not stored."""
    return [message for message in call.ingest if message.id not in session.ids]


def _finder(seen: ShownTools) -> budget_pb2.ToolDefinition:
    schema = {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "What to find."}},
        "required": ["query"],
        "additionalProperties": False,
    }
    return budget_pb2.ToolDefinition(
        name=DISCOVERY, description=described(seen), input_schema_json=orjson.dumps(schema)
    )


def _called(bodies: Sequence[bytes]) -> set[str]:
    return {
        part.tool_call.name
        for body in bodies
        for part in message_pb2.Message.FromString(body).parts
        if part.HasField("tool_call")
    }


def _query(arguments: bytes) -> str | None:
    try:
        given = orjson.loads(arguments) if arguments.strip() else {}
    except ValueError:
        return None
    query = given.get("query") if isinstance(given, dict) else None
    return query if isinstance(query, str) and query.strip() else None


def _said(definition: budget_pb2.ToolDefinition) -> dict[str, Any]:
    try:
        schema = orjson.loads(definition.input_schema_json or b"{}")
    except ValueError:
        schema = definition.input_schema_json.decode("utf-8", "replace")
    return {
        "name": definition.name,
        "description": definition.description,
        "input_schema": schema,
    }


def _refused(code: str, why: str) -> Discovery:
    return Discovery(orjson.dumps({"error": {"code": code, "message": why}}), (), is_error=True)


def _bytes_of(definition: budget_pb2.ToolDefinition) -> int:
    return definition.ByteSize()


def _size(definitions: Definitions) -> int:
    return 64 + sum(map(_bytes_of, definitions))
