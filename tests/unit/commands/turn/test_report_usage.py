"""ReportUsage: bills are summed once each; what they teach waits."""

from __future__ import annotations

import pytest

from contextengine_server.api.replies import assembly_id, sent_in
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.errors import RequestIdReused, SessionNotFound
from contextengine_server.session.assembly.budget import SYSTEM, TOOLS, BudgetSpec
from contextengine_server.session.model import MOST, Report, Sent
from tests.unit.commands.house import S1, TENANT, Server, request, scope

BILLED = Report(input_tokens=10, cache_read_tokens=4, output_tokens=5, billed=True)


async def test_bills_are_summed(server: Server) -> None:
    await server.ingest("a")
    for _ in range(2):
        done = await server.context.report_usage.run(TENANT, S1, BILLED, None)
    usage = (await server.state()).usage
    assert (usage.input_tokens, usage.output_tokens, usage.reports) == (20, 10, 2)
    assert (usage.last_prompt, usage.last_completion, usage.last_total) == (14, 5, 19)
    assert done.revision == 3
    assert server.core.meters.reported["input_tokens"].value == 20


async def test_the_same_request_again_adds_nothing(server: Server) -> None:
    await server.ingest("a")
    for _ in range(2):
        done = await server.context.report_usage.run(TENANT, S1, BILLED, request())
    assert done.revision == 2
    assert (await server.state()).usage.reports == 1
    assert server.core.meters.reported["input_tokens"].value == 10
    with pytest.raises(RequestIdReused):
        await server.context.report_usage.run(TENANT, S1, BILLED, request(digest=b"x"))


async def test_sums_stop_where_the_wire_holds_no_more(server: Server) -> None:
    await server.ingest("a")
    huge = Report(input_tokens=MOST, billed=True)
    for _ in range(2):
        await server.context.report_usage.run(TENANT, S1, huge, None)
    assert (await server.state()).usage.input_tokens == MOST


async def test_what_is_taught_is_not_in_force(server: Server) -> None:
    await server.ingest("a")
    before = await server.assemble()
    taught = Report(input_tokens=2_000, billed=True, sent=Sent(ReferenceTokens(1_000)), other=0)
    done = await server.context.report_usage.run(TENANT, S1, taught, None)
    assert done.model.learned > 1 == done.model.factor
    after = await server.assemble()
    assert (after.epoch, after.estimated) == (before.epoch, before.estimated)


async def test_the_smallest_limit_that_was_seen_binds(server: Server) -> None:
    await server.ingest("a")
    for limit in (50_000, 30_000, 40_000):
        refused = Report(overflow_limit=limit)
        done = await server.context.report_usage.run(TENANT, S1, refused, None)
    assert done.model.served_window == 30_000
    assert (await server.state()).usage.reports == 0


async def test_a_session_that_is_not_there(server: Server) -> None:
    with pytest.raises(SessionNotFound):
        await server.context.report_usage.run(TENANT, S1, BILLED, None)
    assert await server.store.head(scope()) is None
    assert server.core.meters.reported["input_tokens"].value == 0


async def test_what_a_budget_knew_outside_the_messages_teaches_nothing(server: Server) -> None:
    """The system prompt and the tools are part of the bill, and of what it is compared with."""
    await server.ingest(*("words and more of them " * 300 for _ in range(20)))
    named = BudgetSpec(window=200_000, system_prompt=9_000, tools=6_000, named=SYSTEM | TOOLS)
    for _ in range(20):
        sent = sent_in(assembly_id(await server.assemble(budget=named)))
        assert sent.tokens > 1_000
        bill = Report(input_tokens=sent.tokens + 15_000, billed=True, sent=sent)
        done = await server.context.report_usage.run(TENANT, S1, bill, None)
    assert done.model.learned == pytest.approx(1.0, abs=0.01)
