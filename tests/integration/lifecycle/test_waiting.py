"""Reads that wait for a revision: as long as their caller does, and never for good."""

from __future__ import annotations

import pytest

from contextengine import ContextEngineError, user
from contextengine_server.session import sessions
from tests.integration.harness import House, budget, problem, ref


async def test_what_never_comes_is_not_waited_for_without_end(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_WAIT_S", 0.2)
    await house.client.ingest(ref(), user("one"))
    with pytest.raises(ContextEngineError) as caught:
        await house.client.assemble(ref(), budget=budget(100), at_least_revision=10**9)
    assert problem(caught.value)[:2] == ("DEADLINE_EXCEEDED", "DEADLINE")
    assert "revision 1000000000" in str(caught.value)
    assert house.app.server._admission.in_flight == 0
