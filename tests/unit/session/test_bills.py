"""What a report is charged with, what a session sums of it, and when an answer may be longer."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from contextengine_server.commands.turn.update_model import Model
from contextengine_server.context.budget import Budget, ModelTokens
from contextengine_server.session.assembly.budget import BudgetSpec
from contextengine_server.session.model import MOST, Report
from contextengine_server.session.state import SessionState, UsageFacts
from contextengine_server.session.usage.escalation import (
    escalates,
    longer_output,
    stopped_for_length,
)
from contextengine_server.store.charges import Charge
from contextengine_server.store.rows import SessionHead
from tests.unit.commands.house import S1, TENANT, Server, scope

MILLION = 1_000_000
HEAD = SessionHead(scope(), "i", 1, 0, model="claude-sonnet-4-5", provider="anthropic")
BILLED = Report(
    input_tokens=100,
    output_tokens=20,
    cache_read_tokens=1_000,
    cache_write_tokens=400,
    billed=True,
)


def charged(server: Server, report: Report, head: SessionHead | None = HEAD) -> Charge:
    charge = server.core.usage.billing.charge(head, report)
    assert charge is not None
    return charge


def test_what_was_billed_is_charged_by_the_catalogue(server: Server) -> None:
    charge = charged(server, BILLED)
    cost = 100 * 3 + 20 * 15 + 1_000 * 3 // 10 + 400 * 3 * 125 // 100
    assert charge == Charge(
        server.clock.ms,
        1_520,
        "anthropic",
        "claude-sonnet-4-5",
        100,
        20,
        1_000,
        400,
        cost,
        1_000 * 3 * 9 // 10 - 400 * 3 // 4,
        unpriced=0,
    )


def test_nothing_is_charged_where_nothing_was_billed(server: Server) -> None:
    billing = server.core.usage.billing
    assert billing.charge(HEAD, None) is None
    assert billing.charge(HEAD, Report(input_tokens=5)) is None


@pytest.mark.parametrize(
    ("head", "ran", "provider", "model"),
    [
        (HEAD, "", "anthropic", "claude-sonnet-4-5"),
        (HEAD, "claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5"),
        (HEAD, "gpt-5", "openai", "gpt-5"),
        (HEAD, "nobody-knows", "anthropic", "nobody-knows"),
        (replace(HEAD, provider=""), "", "anthropic", "claude-sonnet-4-5"),
        (None, "gpt-5", "openai", "gpt-5"),
        (None, "", "", ""),
    ],
)
def test_what_ran_beside_the_sessions_model_is_charged_as_that(
    server: Server, head: SessionHead | None, ran: str, provider: str, model: str
) -> None:
    charge = charged(server, replace(BILLED, ran=ran), head)
    assert (charge.provider, charge.model) == (provider, model)


def test_what_nobody_has_a_price_of_is_unpriced_unless_the_caller_says(server: Server) -> None:
    unknown = replace(BILLED, ran="nobody-knows")
    assert (charged(server, unknown).unpriced, charged(server, unknown).cost_micro_usd) == (1, 0)
    told = charged(server, replace(unknown, cost_micro_usd=7))
    assert (told.unpriced, told.cost_micro_usd, told.saved_micro_usd) == (0, 7, 0)


def test_no_charge_is_beyond_what_sums_can_hold(server: Server) -> None:
    huge = Report(input_tokens=2**60, cache_read_tokens=2**61, billed=True)
    charge = charged(server, huge)
    assert (charge.tokens, charge.cost_micro_usd, charge.saved_micro_usd) == (2**53,) * 3
    writes = charged(server, Report(cache_write_tokens=2**62, billed=True))
    assert writes.saved_micro_usd == -(2**53)


async def test_a_session_sums_its_charges_and_its_turns_tokens(server: Server) -> None:
    await server.context.ingest.run(TENANT, S1, [], None)
    await server.ingest("a")
    for _ in range(2):
        await server.context.report_usage.run(
            TENANT, S1, replace(BILLED, ran="claude-sonnet-4-5"), None
        )
    charge = charged(server, BILLED)
    usage = (await server.state()).usage
    assert usage.priced_micro_usd == 2 * charge.cost_micro_usd
    assert usage.saved_micro_usd == 2 * charge.saved_micro_usd
    assert (usage.turn, usage.turn_tokens, usage.unpriced) == (1, 2 * 1_520, 0)
    await server.ingest("b")
    await server.context.report_usage.run(TENANT, S1, replace(BILLED, ran="nobody-knows"), None)
    usage = (await server.state()).usage
    assert (usage.turn, usage.turn_tokens, usage.unpriced) == (2, 1_520, 1)
    meters = server.core.meters
    assert meters.cost.value == 2 * charge.cost_micro_usd
    assert meters.saved == 2 * charge.saved_micro_usd
    assert meters.reported["output_tokens"].value == 60
    assert (await server.store.ledger.spent(TENANT, S1.agent))[0].tokens == 3 * 1_520


def test_sums_stop_where_the_wire_holds_no_more(server: Server) -> None:
    billing = server.core.usage.billing
    full = SessionState(
        usage=UsageFacts(priced_micro_usd=MOST, saved_micro_usd=-MOST, turn_tokens=MOST)
    )
    charge = replace(charged(server, BILLED), saved_micro_usd=-5)
    usage = billing.noting(HEAD, full, BILLED, charge).usage
    assert (usage.priced_micro_usd, usage.saved_micro_usd, usage.turn_tokens) == (
        MOST,
        -MOST,
        MOST,
    )
    other = replace(full, usage=replace(full.usage, saved_micro_usd=MOST))
    saved = billing.noting(HEAD, other, BILLED, replace(charge, saved_micro_usd=5)).usage
    assert saved.saved_micro_usd == MOST


@pytest.mark.parametrize(
    ("word", "cut"),
    [
        ("length", True),
        ("max_tokens", True),
        ("MAX_TOKENS", True),
        (" maxTokens ", True),
        ("max-output-tokens", True),
        ("max_length", True),
        ("output_length", True),
        ("stop", False),
        ("tool_use", False),
        ("", False),
    ],
)
def test_words_for_an_answer_that_was_cut_off(word: str, cut: bool) -> None:
    assert stopped_for_length(word) is cut


def state(**usage: Any) -> SessionState:
    """A session in its turn that began with message 3, at its second compaction."""
    begun = SessionState(usage=UsageFacts(**{"reports": 1, "turn": 3, "compactions": 2, **usage}))
    return replace(begun, compactions=2, view=replace(begun.view, user_first=3))


@pytest.mark.parametrize(
    ("given", "longer"),
    [
        (state(), False),
        (state(length_stop=True), True),
        (state(length_stop=True, turn=1), False),
        (state(compactions=1), True),
        (state(compactions=1, escalated=3), False),
        (state(compactions=1, escalated=1), True),
        (state(compactions=1, reports=0), False),
    ],
)
def test_an_answer_may_be_longer_once_a_turn(given: SessionState, longer: bool) -> None:
    assert escalates(given) is longer


@pytest.mark.parametrize(
    ("wanted", "most", "sent", "room"),
    [
        (0, None, 0, 0),
        (500, None, 0, 500),
        (500, 300, 0, 300),
        (500, 100, 0, 0),  # no more than the reserve
        (500, 101, 0, 101),
        (5_000, None, 500, 350),  # what the window leaves
        (5_000, None, 750, 0),
    ],
)
def test_how_long_it_may_be(wanted: int, most: int | None, sent: int, room: int) -> None:
    budget = Budget(
        available=ModelTokens(700),
        window=ModelTokens(1_000),
        system_prompt=ModelTokens(100),
        tools=ModelTokens(50),
        output_reserve=ModelTokens(100),
    )
    told = longer_output(state(compactions=1), wanted, budget, ModelTokens(sent), most)
    assert told == room
    assert longer_output(state(), wanted, budget, ModelTokens(sent), most) == 0
    given = Budget(available=ModelTokens(700))
    assert longer_output(state(compactions=1), 5_000, given, ModelTokens(900), None) == 5_000


async def test_a_report_notes_the_compactions_there_were(server: Server) -> None:
    """So that a compaction suggests one longer answer and no more."""
    await server.talk(1, 8)
    await server.context.report_usage.run(TENANT, S1, BILLED, None)
    assert (await server.state()).usage.compactions == 0
    await server.compact()
    compacted = await server.state()
    assert compacted.compactions > 0
    assert escalates(compacted)
    await server.context.report_usage.run(TENANT, S1, BILLED, None)
    noted = await server.state()
    assert noted.usage.compactions == compacted.compactions
    assert noted.usage.escalated == noted.usage.turn
    assert not escalates(noted)


async def test_an_assembly_suggests_the_longer_answer(server: Server) -> None:
    """After a stop for length and after a compaction; no longer than the model can give."""
    await server.context.update_model.run(TENANT, S1, Model("m", window=200_000), None)
    await server.ingest("write a book")
    assert (await server.assemble(budget=BudgetSpec())).longer_output == 0
    cut = replace(BILLED, stopped_for_length=True)
    await server.context.report_usage.run(TENANT, S1, cut, None)
    assert (await server.assemble(budget=BudgetSpec())).longer_output == 32_768
    await server.context.update_model.run(TENANT, S1, Model(max_output=20_000), None)
    assert (await server.assemble(budget=BudgetSpec())).longer_output == 20_000
    left = BudgetSpec(window=25_000, system_prompt=12_000)
    made = await server.assemble(budget=left)
    assert made.longer_output == 13_000 - made.estimated
    await server.ingest("never mind")
    assert (await server.assemble(budget=BudgetSpec())).longer_output == 0, "another turn"
    await server.talk(1, 8)
    await server.context.report_usage.run(TENANT, S1, BILLED, None)
    assert (await server.assemble(budget=BudgetSpec())).longer_output == 0
    await server.compact()
    assert (await server.assemble(budget=BudgetSpec())).longer_output == 20_000
