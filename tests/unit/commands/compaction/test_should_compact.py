"""ShouldCompact: a verdict that changes nothing."""

from __future__ import annotations

import pytest

from contextengine_server.commands.compaction.should_compact import (
    BELOW,
    DEFERRED_TO_USAGE,
    OVER,
    ShouldCompactCall,
    awaits_usage,
)
from contextengine_server.context.budget import ModelTokens
from contextengine_server.errors import SessionNotFound
from contextengine_server.session.assembly.budget import BudgetSpec
from contextengine_server.session.model import Report
from contextengine_server.session.state import SessionState, UsageFacts
from tests.unit.commands.conftest import Serve
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


async def test_an_estimate_waits_for_a_bill_where_the_last_prompt_fitted(serve: Serve) -> None:
    """Until more came than an estimate may be wrong by; the host that does not ask before its call
    is told at once."""
    server = await serve(**{"engine.default": "compressor"})
    await server.talk(1, 12)
    assert (await server.compact(10_000)).done.compacted
    await server.talk(13, 1)
    ask, budget = server.context.should_compact, BudgetSpec(message_tokens=ModelTokens(10_000))

    async def verdict(*, preflight: bool) -> tuple[bool, str]:
        call = ShouldCompactCall(budget, ModelTokens(8_600), preflight)
        said = await ask.run(TENANT, S1, call)
        return said.due, said.reason

    assert await verdict(preflight=True) == (True, OVER), "nothing is known of the prompt"
    await report(server, 2_000)
    assert await verdict(preflight=True) == (False, DEFERRED_TO_USAGE)
    assert await verdict(preflight=False) == (True, OVER)
    await server.talk(14, 5)
    assert await verdict(preflight=True) == (False, DEFERRED_TO_USAGE)
    await server.talk(19, 1)
    assert await verdict(preflight=True) == (True, OVER)


async def test_a_reply_without_usage_ends_the_wait_and_judges_nothing(serve: Serve) -> None:
    server = await serve(**{"engine.default": "compressor"})
    await server.talk(1, 12)
    await report(server, 9_000)
    assert (await server.compact(10_000)).done.compacted
    waiting = await server.context.should_compact.run(TENANT, S1, asked(10_000))
    assert waiting.awaiting
    await report(server, 0)
    over = await server.context.should_compact.run(TENANT, S1, asked(10_000))
    assert not over.awaiting
    await report(server, 9_900)
    assert (await server.state()).attempts.strikes == 0


async def report(server: Server, tokens: int) -> None:
    """The provider billed a prompt of so many tokens."""
    bill = Report(input_tokens=tokens, billed=True)
    await server.context.report_usage.run(TENANT, S1, bill, None)
