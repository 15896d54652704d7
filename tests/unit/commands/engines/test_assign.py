"""Assign: what an operator chose serves from the next run on."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.context.scope import Scope
from contextengine_server.engines.patterns import SessionPattern
from contextengine_server.errors import EngineFailed, InvalidField, UnknownEngine
from contextengine_server.session.address import Ref
from contextengine_server.store.rows import Assignment
from tests.integration.engines.broken import FRAGILE, Fragile
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


async def named_by(server: Server, ref: Ref) -> str:
    """Who chose the engine of a session."""
    return (await server.core.selection.engine_for(scope(ref))).source


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        (SessionPattern(session="long-*"), ["long-1"]),
        (SessionPattern(key="cron:*"), ["keyed"]),
        (SessionPattern(model="gpt-5*"), ["gpt"]),
        (SessionPattern(min_window=300_000), ["gpt"]),
        (SessionPattern(max_window=1_000), ["small"]),
        (SessionPattern(agent=AGENT), ["plain", "long-1", "keyed", "gpt", "small"]),
        (SessionPattern(agent="another"), []),
    ],
)
async def test_sessions_are_meant_by_what_is_known_of_them(
    server: Server, other: Server, pattern: SessionPattern, meant: list[str]
) -> None:
    names = ["plain", "long-1", "keyed", "gpt", "small"]
    refs = {name: Ref(AGENT, name, "cron:x" if name == "keyed" else "") for name in names}
    for name, ref in refs.items():
        said = {"gpt": Introduction(model="gpt-5-mini"), "small": Introduction(window=900)}
        await server.context.bootstrap.run(TENANT, ref, said.get(name, Introduction()))
    done = await server.engines.assign.run(
        Scope(TENANT, "", ""), "legacy", {}, clear=False, pattern=pattern
    )
    assert (done.engine.id, done.source) == ("legacy", "pattern")
    for one in (server, other):
        chosen = [name for name, ref in refs.items() if await named_by(one, ref) == "pattern"]
        assert chosen == meant
    assert server.events("engine:assigned")[-1].session == ""


async def test_the_tenant_is_no_session(server: Server) -> None:
    """A pattern of sessions says nothing of the tenant's own choice."""
    everyone = SessionPattern(session="**")
    tenant = Scope(TENANT, "", "")
    await server.engines.assign.run(tenant, "legacy", {}, clear=False, pattern=everyone)
    assert (await server.core.selection.select(tenant)).source == "configuration"
    assert (await server.core.selection.choose(scope())).engine_id == "legacy"
    assert (await server.core.selection.choose(scope(), inherited=True)).engine_id == "legacy"


async def test_what_is_assigned_meanwhile_is_not_missed(server: Server) -> None:
    """Neither by a session that is asked for at the same time."""
    read = server.store.assignments

    async def raced(tenant: str) -> list[Assignment]:
        rows = await read(tenant)
        server.store.assignments = read  # type: ignore[method-assign]
        await server.engines.assign.run(scope(), "legacy", {}, clear=False)
        return rows

    server.store.assignments = raced  # type: ignore[method-assign, assignment]
    assert (await server.core.selection.engine_for(scope())).engine.id == "legacy"


async def test_an_engine_that_cannot_be_made_is_not_chosen(serve: Serve) -> None:
    def refuses(options: object) -> Fragile:
        raise RuntimeError("no licence")

    server = await serve(engines=[replace(FRAGILE, make=refuses)])
    for where in (scope(), Scope(TENANT, AGENT, "")):
        with pytest.raises(EngineFailed) as refused:
            await server.engines.assign.run(where, "fragile", {}, clear=False)
        assert refused.value.metadata["operation"] == "load"
        assert str(refused.value).startswith("engine 'fragile' failed to load: ")
        assert str(refused.value).endswith("mend or remove its plugin")
    assert await server.store.assignments(TENANT) == []
