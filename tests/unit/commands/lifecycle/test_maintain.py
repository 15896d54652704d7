"""Maintain: the engine that was asked for rewrites."""

from __future__ import annotations

import pytest

from contextengine_server.errors import SessionNotFound
from tests.unit.commands.house import S1, TENANT, Server, scope


async def test_the_engine_that_serves_is_asked(server: Server) -> None:
    await server.ingest("a")
    assert (await server.context.maintain.run(TENANT, S1)).engine.id == "dag"
    await server.engines.assign.run(scope(), "legacy", {}, clear=False)
    assert (await server.context.maintain.run(TENANT, S1)).engine.id == "legacy"
    assert (await server.head()).revision == 1


async def test_a_session_that_is_not_there(server: Server) -> None:
    with pytest.raises(SessionNotFound):
        await server.context.maintain.run(TENANT, S1)
