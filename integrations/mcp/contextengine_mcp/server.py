"""The MCP server: the tools of the session's engine, and the state of the session.

A tool's answer is data for the model. While the service is away a call answers an error that says
so: the agent goes on.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import mcp_types as mcp
from mcp.server import Server, ServerRequestContext
from mcp.server.subscriptions import ListenHandler

from contextengine import AsyncClient, ContextEngineError
from contextengine.errors import SessionNotFound
from contextengine.types import GetStatusResponse, SessionRef, ToolDefinition

from .away import PROBE_S, Away, nobody
from .later import Later
from .names import Names
from .patience import Patience

STATUS = "context_status"
INSTRUCTIONS = (
    "What was said earlier in this conversation is kept, also where it is no longer in your"
    " context. Search it with these tools before you ask for what was said before."
)
_TIMEOUT_S = 20.0
"""A model waits for a tool; a search counts and may take some seconds. A service that does not
answer at all costs less (patience.py)."""
_READS = mcp.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
"""So that a host need not ask its user before each call."""
_READING = ("ctx_search", "ctx_inspect", "ctx_expand", "session_search", "memory_search")
"""The service's own tools. One that an engine brings may do anything."""
_STATUS_TOOL = mcp.Tool(
    name=STATUS,
    description=(
        "How this conversation is kept: messages, tokens, summaries and the engine. Takes no"
        " arguments."
    ),
    input_schema={"type": "object", "properties": {}, "additionalProperties": False},
    annotations=_READS,
)

Context = ServerRequestContext[Any, Any]


def server(
    client: AsyncClient, names: Names, away: Away, later: Later | None = None
) -> Server[Any]:
    """The server, whose tools are asked of `client` at each call. away: what is remembered of the
    service. later: who tells the host of tools that it could not be told of."""
    patience = Patience(client, away)
    later = later or Later()

    async def list_tools(
        context: Context, params: mcp.PaginatedRequestParams | None
    ) -> mcp.ListToolsResult:
        ref = names.of(_meta(params))
        try:
            reply = await patience.answered(lambda: client.list_tools(ref, timeout=_TIMEOUT_S))
        except ContextEngineError as error:
            sys.stderr.write(f"contextengine-mcp: no tools but {STATUS}: {error}\n")
            if nobody(error):
                # By calls of its own: whoever looks in by a glance finds none that is far away.
                later.tell(context.session, lambda: client.list_tools(ref, timeout=PROBE_S))
            # A host asks once, when it starts; one that gets an error goes on without any tool.
            return mcp.ListToolsResult(tools=[_STATUS_TOOL])
        return mcp.ListToolsResult(tools=[*map(_tool, reply.tools), _STATUS_TOOL])

    async def call_tool(context: Context, params: mcp.CallToolRequestParams) -> mcp.CallToolResult:
        ref = names.of(_meta(params))
        try:
            if params.name == STATUS:
                status = await patience.answered(lambda: client.get_status(ref, timeout=_TIMEOUT_S))
                return _answer(_status(status), False)
            arguments = json.dumps(params.arguments or {}).encode()
            reply = await patience.answered(
                lambda: client.call_tool(
                    ref, name=params.name, arguments_json=arguments, timeout=_TIMEOUT_S
                )
            )
        except ContextEngineError as error:
            return _answer(_failure(ref, error), True)
        return _answer(reply.result_json.decode(), reply.is_error)

    return Server(
        "contextengine",
        version=version("contextengine-mcp"),
        instructions=INSTRUCTIONS,
        lifespan=later.living,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=ListenHandler(later.bus),
    )


def _meta(params: mcp.RequestParams | mcp.PaginatedRequestParams | None) -> Mapping[str, Any]:
    return dict(params.meta) if params is not None and params.meta is not None else {}


def _tool(tool: ToolDefinition) -> mcp.Tool:
    return mcp.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=json.loads(tool.input_schema_json or b'{"type":"object"}'),
        annotations=_READS if tool.name in _READING else None,
    )


def _answer(text: str, is_error: bool) -> mcp.CallToolResult:
    return mcp.CallToolResult(content=[mcp.TextContent(type="text", text=text)], is_error=is_error)


def _failure(ref: SessionRef, error: ContextEngineError) -> str:
    """What a model is told where a call has failed, in the form in which the service tells it of
    its arguments: what it can do about it."""
    said = error.message or str(error)
    if isinstance(error, SessionNotFound):
        named = f"{ref.session_id or ref.session_key!r} of agent {ref.agent_id!r}"
        said = f"nothing of this conversation is recorded yet, so nothing is found: session {named}"
    elif nobody(error):
        said = f"the service does not answer: go on without it, and try again later ({said})"
    code = error.reason or error.code.name
    return json.dumps({"error": {"code": code.lower(), "message": said}})


def _status(status: GetStatusResponse) -> str:
    """What a model or its user wants to know of a session."""
    return json.dumps(
        {
            "session_id": status.session_id,
            "engine": status.engine.id,
            "messages": status.message_count,
            "message_tokens": status.message_tokens,
            "shown_tokens": status.view_tokens,
            "summaries": status.summary_count,
            "compactions": status.compaction_count,
            "ended": status.ended,
        }
    )
