"""An engine that a turn began with serves until the turn is over, whatever is chosen meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.scope import Scope
from contextengine_server.session.address import Ref
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import (
    AGENT,
    S1,
    TENANT,
    Server,
    assistant,
    incoming,
    result,
    scope,
    user,
)

S2 = Ref(AGENT, "s2")
EVERYONE = Scope(TENANT, "", "")


async def said(server: Server, *messages: pb.Message, ref: Ref = S1, tenant: str = TENANT) -> None:
    await server.context.ingest.run(tenant, ref, incoming(*messages), None)


async def assign(server: Server, engine: str, where: Scope = EVERYONE) -> None:
    await server.engines.assign.run(where, engine, {}, clear=False)


async def serving(server: Server, where: Scope | None = None, **how: Any) -> str:
    selected = await server.core.selection.engine_for(where or scope(), **how)
    return selected.engine.id


async def test_a_turn_under_way_keeps_its_engine(server: Server) -> None:
    await said(server, user("look", "1"), assistant("I look", "2", "c1"))
    await said(server, user("hello", "1"), assistant("hello", "2"), ref=S2)
    await assign(server, "legacy")
    assert await serving(server) == "dag"
    assert await serving(server, scope(S2)) == "legacy"  # between two turns
    assert await serving(server, next_turn=True) == "legacy"
    await said(server, result("c1", "seen", "3"))
    assert await serving(server) == "dag"
    await said(server, assistant("done", "4"))
    assert await serving(server) == "legacy"
    # What it once let go of does not come back with the next turn.
    await said(server, user("again", "5"), assistant("", "6", "c2"))
    assert await serving(server) == "legacy"


async def test_a_choice_and_one_more_keep_the_first(server: Server) -> None:
    await said(server, user("look", "1"), assistant("", "2", "c1"))
    await assign(server, "legacy")
    await assign(server, "", scope())
    assert await serving(server) == "dag"
    await said(server, result("c1", "seen", "3"), assistant("done", "4"), user("go on", "5"))
    await said(server, assistant("", "6", "c2"))
    # The next turn is under way: it began with what was chosen by then, and keeps that.
    await assign(server, "dag")
    assert await serving(server) == "legacy"


async def test_a_choice_in_one_tenant_says_nothing_of_another(server: Server) -> None:
    await said(server, user("look", "1"), assistant("", "2", "c1"))
    await said(server, user("look", "1"), assistant("", "2", "c1"), tenant="other")
    await assign(server, "legacy", Scope("other", "", ""))
    await assign(server, "legacy")
    elsewhere = Scope("other", AGENT, "s1")
    assert await serving(server, elsewhere) == "dag"
    # Kept while a turn is under way: the plain engine is not taken for the tenant's by then.
    await said(server, assistant("done", "3"), tenant="other")
    assert await serving(server, elsewhere) == "legacy"
    assert await serving(server) == "dag"


async def test_a_session_that_is_not_in_memory_has_no_turn_to_keep(
    server: Server, serve: Serve
) -> None:
    await said(server, user("look", "1"), assistant("", "2", "c1"))
    await assign(server, "legacy")
    assert await serving(await serve()) == "legacy"
    assert server.core.cache.drop(scope())
    assert await serving(server) == "legacy"
    await server.shown()
    assert await serving(server) == "legacy"


async def test_a_tenant_of_plain_choice_is_known_by_it(server: Server) -> None:
    """Of a tenant within which nothing is assigned one engine serves all sessions, and no session
    is asked; while a turn keeps another engine that is not so."""
    selection = server.core.selection
    plain = await selection.engine_for(scope())
    assert selection.unassigned == {TENANT: plain}
    assert (plain.source, plain.options_source, plain.chosen) == (
        "configuration",
        "configuration",
        "",
    )
    await said(server, user("look", "1"), assistant("", "2", "c1"))
    await assign(server, "legacy")
    assert selection.unassigned == {}
    await server.engines.assign.run(EVERYONE, "", {}, clear=True)
    await selection.engine_for(scope(S2))
    assert selection.unassigned == {}
    await said(server, result("c1", "seen", "3"), assistant("done", "4"))
    await selection.engine_for(scope())
    await selection.engine_for(scope())
    assert selection.unassigned == {TENANT: plain}


@pytest.mark.parametrize(
    ("where", "source"),
    [(EVERYONE, "tenant"), (Scope(TENANT, AGENT, ""), "agent"), (scope(), "session")],
)
async def test_who_chose_is_named(server: Server, where: Scope, source: str) -> None:
    selection = server.core.selection
    await server.engines.assign.run(where, "legacy", {}, clear=False)
    chosen = await selection.engine_for(scope())
    assert (chosen.engine.id, chosen.source, chosen.options_source) == (
        "legacy",
        source,
        "configuration",
    )
    options = {"freshTailTurns": 5, "summarizer": {"model": "cheap:m"}}
    await server.engines.assign.run(where, "dag", options, clear=False)
    chosen = await selection.engine_for(scope())
    assert (chosen.engine.id, chosen.source, chosen.options_source) == ("dag", source, source)
    settings, policy_source = selection.policy_settings(scope())
    assert (settings.model, policy_source) == ("cheap:m", source)
    assert selection.policy(scope()).model == "cheap:m"
    elsewhere = Scope("other", AGENT, "s1")
    assert selection.policy_settings(elsewhere)[1] == "configuration"
    assert await selection.engine_for(elsewhere) != chosen
