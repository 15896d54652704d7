"""Get: one engine, with the options that hold for a scope."""

from __future__ import annotations

import pytest

from contextengine_server.context.scope import Scope
from contextengine_server.errors import UnknownEngine
from tests.unit.commands.house import AGENT, TENANT, Server, scope


async def test_the_engine_that_serves_with_its_options(server: Server) -> None:
    options = {"freshTailTurns": 3, "summarizer": {"model": "cheap:model"}}
    await server.engines.assign.run(scope(), "dag", options, clear=False)
    found = await server.engines.get.run(scope(), "")
    assert found.values.model_dump()["fresh_tail_turns"] == 3
    assert (found.source, found.options_source, found.policy_source) == ("session",) * 3
    assert found.policy.model == "cheap:model"
    other = await server.engines.get.run(Scope(TENANT, AGENT, ""), "legacy")
    assert (other.status.registration.id, other.source) == ("legacy", "request")
    with pytest.raises(UnknownEngine):
        await server.engines.get.run(scope(), "none")
