"""The MCP server: the tools of the session's engine, and the state of the session.

A tool's answer is data for the model. While the service is away a call answers an error that says
so: the agent goes on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import mcp_types as mcp
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

from contextengine import AsyncClient, ContextEngineError
from contextengine.types import GetStatusResponse, SessionRef

from .away import Away
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
_STATUS_TOOL = mcp.Tool(
    name=STATUS,
    description=(
        "How this conversation is kept: messages, tokens, summaries and the engine. Takes no"
        " arguments."
    ),
    input_schema={"type": "object", "properties": {}, "additionalProperties": False},
)

Context = ServerRequestContext[Any, Any]


def server(client: AsyncClient, names: Names, away: Away) -> Server[Any]:
    """The server, whose tools are asked of `client` at each call. away: what is remembered of the
    service."""
    patience = Patience(client, away)

    async def list_tools(
        context: Context, params: mcp.PaginatedRequestParams | None
    ) -> mcp.ListToolsResult:
        try:
            ref = names.of(_meta(params))
            reply = await patience.answered(lambda: client.list_tools(ref, timeout=_TIMEOUT_S))
        except ContextEngineError:
            # A host asks once, when it starts; one that gets an error goes on without any tool.
            return mcp.ListToolsResult(tools=[_STATUS_TOOL])
        offered = [
            mcp.Tool(
                name=tool.name,
                description=tool.description,
                input_schema=json.loads(tool.input_schema_json or b'{"type":"object"}'),
            )
            for tool in reply.tools
        ]
        return mcp.ListToolsResult(tools=[*offered, _STATUS_TOOL])

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
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve(client: AsyncClient, names: Names, away: Away) -> None:
    """Serves on standard input and output until the host closes them."""
    serving = server(client, names, away)
    async with stdio_server() as (read, write):
        await serving.run(read, write, serving.create_initialization_options())


def _meta(params: mcp.RequestParams | mcp.PaginatedRequestParams | None) -> Mapping[str, Any]:
    return dict(params.meta) if params is not None and params.meta is not None else {}


def _answer(text: str, is_error: bool) -> mcp.CallToolResult:
    return mcp.CallToolResult(content=[mcp.TextContent(type="text", text=text)], is_error=is_error)


def _failure(ref: SessionRef, error: ContextEngineError) -> str:
    said = {"error": error.message or str(error), "reason": error.reason}
    return json.dumps(said | {"session": ref.session_id or ref.session_key})


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
