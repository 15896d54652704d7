"""ListTools: the tools of the engine that serves."""

from __future__ import annotations

from tests.unit.commands.house import S1, TENANT, Server, scope


async def test_the_tools_are_the_engines(server: Server) -> None:
    tools = await server.context.list_tools.run(TENANT, S1)
    assert [tool.name for tool in tools] == ["ctx_search", "ctx_inspect", "ctx_expand"]
    await server.engines.assign.run(scope(), "legacy", {}, clear=False)
    assert await server.context.list_tools.run(TENANT, S1) == []


async def test_the_pipeline_has_one_tool(server: Server) -> None:
    await server.engines.assign.run(scope(), "pipeline", {}, clear=False)
    tools = await server.context.list_tools.run(TENANT, S1)
    assert [tool.name for tool in tools] == ["session_search"]
