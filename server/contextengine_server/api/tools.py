"""The part of service ContextEngine that runs tools for the model."""

from __future__ import annotations

from contextengine_proto.v1 import budget_pb2
from contextengine_proto.v1 import lifecycle_pb2 as life
from contextengine_server.api.messages import ref_of, request_id
from contextengine_server.api.pipeline.call import Call
from contextengine_server.commands.context_engine import ContextEngineCommands


class ToolCalls:
    """ListTools and CallTool."""

    commands: ContextEngineCommands

    async def list_tools(
        self, request: life.ListToolsRequest, call: Call
    ) -> life.ListToolsResponse:
        """Answers the tools that the session's engine offers."""
        tools = await self.commands.list_tools.run(call.caller.tenant, ref_of(request.session))
        return life.ListToolsResponse(
            tools=[
                budget_pb2.ToolDefinition(
                    name=tool.name, description=tool.description, input_schema_json=tool.schema
                )
                for tool in tools
            ]
        )

    async def call_tool(self, request: life.CallToolRequest, call: Call) -> life.CallToolResponse:
        """Runs a tool for the model. What the model did wrong is answered as JSON, not as a failed
        call."""
        return await self._call_tool(request, call, noted=True)

    async def _call_tool(
        self, request: life.CallToolRequest, call: Call, *, noted: bool
    ) -> life.CallToolResponse:
        """`noted`: the session remembers what is found."""
        done = await self.commands.call_tool.run(
            call.caller.tenant,
            ref_of(request.session),
            request.name,
            request.arguments_json,
            request_id(request.spawn_token, "spawn_token"),
            request.tools,
            noted=noted,
        )
        return life.CallToolResponse(
            result_json=done.answer.json, is_error=done.answer.is_error, tokens=done.tokens
        )
