"""Project: the assembly of a session that is there."""

from __future__ import annotations

import pytest

from contextengine_server.errors import BudgetImpossible, SessionNotFound
from contextengine_server.session.assembly.assembly import AssembleCall
from contextengine_server.session.assembly.budget import BudgetSpec
from tests.unit.commands.house import S1, TENANT, Server, scope, texts_of


async def test_what_assemble_would_show_is_projected(server: Server) -> None:
    revision = await server.ingest("a", "b")
    call = AssembleCall(TENANT, S1, budget=BudgetSpec(1_000), at_least_revision=revision)
    made = await server.project.run(call)
    assert texts_of(made) == ["a", "b"]
    assert made.epoch == (await server.assemble(1_000)).epoch
    with pytest.raises(BudgetImpossible):
        await server.project.run(AssembleCall(TENANT, S1, budget=BudgetSpec(0)))
    assert (await server.head()).revision == 1


async def test_a_session_that_is_not_there(server: Server) -> None:
    with pytest.raises(SessionNotFound):
        await server.project.run(AssembleCall(TENANT, S1))
    assert await server.store.head(scope()) is None
