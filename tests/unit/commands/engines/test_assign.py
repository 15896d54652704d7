"""Assign: what an operator chose serves from the next run on."""

from __future__ import annotations

from typing import Any

import pytest

from contextengine_server.context.scope import Scope
from contextengine_server.errors import InvalidField, UnknownEngine
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import AGENT, TENANT, Server, scope


async def test_the_nearest_choice_holds(server: Server) -> None:
    assign = server.engines.assign
    whole, agent = Scope(TENANT, "", ""), Scope(TENANT, AGENT, "")
    assert (await assign.run(whole, "legacy", {}, clear=False)).source == "tenant"
    selected = await server.core.selection.engine_for(scope())
    assert (selected.engine.id, selected.source) == ("legacy", "tenant")
    await assign.run(agent, "dag", {}, clear=False)
    await assign.run(scope(), "legacy", {}, clear=False)
    assert (await server.core.selection.engine_for(scope())).source == "session"
    cleared = await assign.run(scope(), "", {}, clear=True)
    assert (cleared.engine.id, cleared.source) == ("dag", "agent")
    other = await server.core.selection.engine_for(Scope("another", AGENT, "s1"))
    assert (other.engine.id, other.source) == ("dag", "configuration")


async def test_options_alone_are_for_the_engine_that_serves_anyway(server: Server) -> None:
    options = {"freshTailTurns": 3}
    done = await server.engines.assign.run(scope(), "", options, clear=False)
    assert (done.engine.id, done.source, done.options_source) == ("dag", "configuration", "session")
    assert done.engine.declared.tail_steps == 3


async def test_a_choice_survives_the_server(server: Server, serve: Serve) -> None:
    await server.engines.assign.run(scope(), "legacy", {}, clear=False)
    again = await serve()
    assert (await again.core.selection.engine_for(scope())).engine.id == "legacy"


@pytest.mark.parametrize(
    ("engine", "options", "error"),
    [
        ("none", {}, UnknownEngine),
        ("dag", {"freshTailTurns": 0}, InvalidField),
        ("dag", {"unknown": 1}, InvalidField),
        ("dag", {"summarizer": {"model": "dear:model"}}, InvalidField),
    ],
)
async def test_what_cannot_be_is_not_kept(
    server: Server, engine: str, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await server.engines.assign.run(scope(), engine, options, clear=False)
    assert await server.store.assignments(TENANT) == []
    assert server.events("engine:") == []


async def test_a_policy_is_kept_for_any_engine(server: Server) -> None:
    options = {"summarizer": {"model": "cheap:model"}}
    await server.engines.assign.run(scope(), "legacy", options, clear=False)
    assert server.core.selection.policy(scope()).model == "cheap:model"
