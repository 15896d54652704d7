"""ShouldCompact: a verdict that changes nothing."""

from __future__ import annotations

import pytest

from contextengine_server.commands.compaction.should_compact import (
    BELOW,
    OVER,
    ShouldCompactCall,
    awaits_usage,
)
from contextengine_server.context.budget import ModelTokens
from contextengine_server.errors import SessionNotFound
from contextengine_server.session.assembly.budget import BudgetSpec
from contextengine_server.session.state import SessionState, UsageFacts
from tests.unit.commands.house import S1, TENANT, Server


def asked(tokens: int) -> ShouldCompactCall:
    return ShouldCompactCall(BudgetSpec(message_tokens=ModelTokens(tokens)))


async def test_the_verdict_follows_from_the_budget_and_changes_nothing(server: Server) -> None:
    await server.talk(1, 6)
    ask = server.context.should_compact
    small, large = [await ask.run(TENANT, S1, asked(tokens)) for tokens in (4_000, 400_000)]
    assert (small.due, small.reason, small.has_content) == (True, OVER, True)
    assert (large.due, large.reason) == (False, BELOW)
    assert small.tokens == large.tokens < large.threshold
    assert await ask.run(TENANT, S1, asked(4_000)) == small


async def test_a_session_that_is_not_there_has_no_verdict(server: Server) -> None:
    with pytest.raises(SessionNotFound):
        await server.context.should_compact.run(TENANT, S1, asked(4_000))


def test_only_a_host_that_reports_usage_is_waited_for() -> None:
    assert not awaits_usage(SessionState(compactions=1))
    assert awaits_usage(SessionState(compactions=2, usage=UsageFacts(reports=3, compactions=1)))
    assert not awaits_usage(SessionState(compactions=2, usage=UsageFacts(reports=3, compactions=2)))
