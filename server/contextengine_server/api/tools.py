"""ListTools and CallTool: what a session's engine offers to the model."""

from __future__ import annotations

from time import perf_counter

from contextengine_proto.v1 import budget_pb2
from contextengine_proto.v1 import lifecycle_pb2 as life
from contextengine_server.api.call import Call
from contextengine_server.api.reading import ref_of
from contextengine_server.api.recall import expand_tokens, head_of, reach_of
from contextengine_server.context.scope import Scope
from contextengine_server.engines.contract import event_name
from contextengine_server.errors import BudgetSpent
from contextengine_server.recall.expanding import MAX_DEPTH, MIN_TOKENS
from contextengine_server.recall.ground import Ground
from contextengine_server.recall.tools import TOOLS, Answer, refusal, run
from contextengine_server.session.core import SessionCore


class ToolCalls:
    """The part of service ContextEngine that runs tools for the model."""

    core: SessionCore
    ground: Ground

    async def list_tools(
        self, request: life.ListToolsRequest, call: Call
    ) -> life.ListToolsResponse:
        """Answers the tools that the session's engine offers."""
        address = await self.core.address(call.caller.tenant, ref_of(request.session))
        selected = await self.core.select(address.scope)
        tools = [TOOLS[name] for name in selected.engine.tools.names]
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
        began = perf_counter()
        core = self.core
        address = await core.address(call.caller.tenant, ref_of(request.session))
        engine = (await core.select(address.scope)).engine
        try:
            with call.trace.span("tool"):
                answer, tokens = await self._answer(address.scope, request, engine.tools.names)
        except BudgetSpent as error:
            # The model asked for more than its host granted it: it should hear of it and go on.
            answer = refusal("grant_spent", error.text, "")
            tokens = await self.ground.count(answer.json.decode())
        if not answer.is_error:
            core.events.emit(
                event_name(engine.id, "expanded"),
                *address.scope,
                revision=(await head_of(core, address.scope)).revision,
                counts={
                    "recovered": answer.recovered,
                    "duration_ms": round((perf_counter() - began) * 1000),
                },
                attributes={"tool": request.name},
            )
        return life.CallToolResponse(
            result_json=answer.json,
            is_error=answer.is_error,
            tokens=tokens,
        )

    async def _answer(
        self, scope: Scope, request: life.CallToolRequest, tools: tuple[str, ...]
    ) -> tuple[Answer, int]:
        """What the tool answers, and its tokens. Raises BudgetSpent where a spawn token does not
        reach so far."""
        head, grant = await reach_of(self.core, scope, request.spawn_token)
        most = await expand_tokens(self.core, head)
        room, depth = (most, MAX_DEPTH) if grant is None else (min(most, grant.left), grant.depth)
        while True:
            answer = await run(
                self.ground, head, request.name, request.arguments_json, tools, room, depth
            )
            tokens = await self.ground.count(answer.json.decode())
            if (
                grant is None
                or tokens <= grant.left
                or room <= MIN_TOKENS
                or request.name == "ctx_search"
            ):
                break
            # The JSON around the texts is paid for too.
            room = max(MIN_TOKENS, room * grant.left * 9 // (tokens * 10))
        if grant is not None and not answer.is_error:
            await grant.spend(tokens)
        return answer, tokens
