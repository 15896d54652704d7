"""An assembly says what it was made for, of what it was made and whether it fits."""

from __future__ import annotations

import asyncio

import pytest

from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.context.budget import cell, in_model
from contextengine_server.context.message import Form
from contextengine_server.errors import DeadlinePassed
from contextengine_server.session import sessions as session_module
from contextengine_server.session.assembly.addition import left_out_words
from contextengine_server.session.assembly.assembly import (
    FITS,
    OVER_BUDGET,
    AssembleCall,
    Prompt,
)
from contextengine_server.session.assembly.budget import BudgetSpec
from tests.unit.commands.house import S1, TENANT, Server, scope, spoken, turns


async def test_it_names_what_it_was_made_for(server: Server) -> None:
    await server.context.bootstrap.run(TENANT, S1, Introduction(model="m", provider="p"))
    await server.ingest("a", "b")
    done = await server.assemble(1_000)
    assert (done.target.model, done.target.provider, done.engine.id) == ("m", "p", "dag")
    assert (done.outcome, done.outcome_reason, list(done.stored), done.due) == (FITS, "", [], False)
    assert (done.budget.available, done.cell, done.available) == (1_000, cell(1_000), 1_000)
    assert done.tokens == (await server.head()).message_tokens
    assert (done.addition, done.addition_tokens, done.prompt_tokens) == ("", 0, 0)
    assert done.estimated == in_model(done.tokens, 1.0)
    assert (done.selected.source, done.method) == ("configuration", server.counter.method)
    assert done.settled_epoch == done.epoch
    assert server.core.meters.assembled[FITS].value == 1


async def test_of_another_model_it_names_that(server: Server) -> None:
    await server.context.bootstrap.run(TENANT, S1, Introduction(model="m", provider="p"))
    await server.ingest("a")
    own = await server.assemble()
    other = await server.assemble(model="claude-sonnet-4-5")
    assert (other.target.model, other.target.provider) == ("claude-sonnet-4-5", "anthropic")
    assert other.epoch != own.epoch
    assert other.budget.factor > 1
    assert other.estimated == round(other.tokens * other.budget.factor)


async def test_what_summaries_say_is_counted_beside_them(server: Server) -> None:
    await server.talk(1, 8)
    await server.compact()
    done = await server.assemble(50_000)
    encoding = server.core.sessions.encodings.default
    assert done.addition
    assert done.addition_tokens == encoding.text_tokens(done.addition)
    assert done.available == 50_000 - done.addition_tokens
    assert done.cell == cell(50_000 - done.addition_tokens)
    assert done.joined.total == len(await server.shown(50_000))
    assert done.estimated == done.tokens + done.addition_tokens


async def test_it_fits_to_the_token(server: Server) -> None:
    await server.talk(1, 1)
    needed = (await server.assemble()).tokens
    exact = next(tokens for tokens in range(needed, 3 * needed) if cell(tokens) >= needed)
    assert (await server.assemble(exact)).outcome == FITS
    less = await server.assemble(needed - 1)
    assert (less.outcome, less.tokens < needed) == (FITS, True)
    assert [slot.form for slot in less.view.atoms[-1].slots] == [Form.HEAD_TAIL]
    assert (await server.assemble(20)).outcome == OVER_BUDGET
    assert server.core.meters.assembled[OVER_BUDGET].value >= 1


async def test_no_token_is_kept_free_that_is_not_said(server: Server) -> None:
    """Where summaries are shown and newer history is left out, the newest step of it would not fit
    beside what is said of both."""
    await server.talk(1, 8)
    await server.compact()
    await server.context.ingest.run(TENANT, S1, turns(9, 8, 30), None)
    whole = await server.assemble()
    for size in range(whole.tokens - 400, whole.tokens - 300):
        done = await server.assemble(size)
        assert done.addition.endswith(left_out_words(done.engine))
        assert done.plan.summaries == whole.plan.summaries
        hidden = done.view.atom(done.plan.cut - 1)
        assert done.tokens + done.addition_tokens + hidden.tokens > size


async def test_what_is_sent_along_is_stored_under_the_request_once(server: Server) -> None:
    call = AssembleCall(
        TENANT,
        S1,
        ingest=spoken("a", "b", ids=False),
        request_id="r",
        budget=BudgetSpec(window=9_999),
    )
    address = await server.core.addresses.find(TENANT, S1)
    for _ in range(2):
        done = await server.core.assembler.assemble(call, address)
        assert [(one.index, one.sequence) for one in done.stored] == [(0, 1), (1, 2)]
    assert await server.stored() == ["a", "b"]


async def test_it_waits_for_a_revision(server: Server, other: Server) -> None:
    await server.ingest("a")
    waiting = asyncio.create_task(server.shown(at_least_revision=2))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    await other.ingest("b")
    async with asyncio.timeout(30):
        assert await waiting == ["a", "b"]


async def test_it_waits_no_longer_than_a_while(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "MAX_WAIT_S", 0.05)
    await server.ingest("a")
    with pytest.raises(DeadlinePassed) as refused:
        await server.shown(at_least_revision=2)
    assert str(refused.value) == (
        "at_least_revision: the session did not reach revision 2 within 0.05 s: was it written to"
        " this server, and was the write acknowledged?"
    )
    assert refused.value.metadata == {"field": "at_least_revision"}


async def test_a_larger_budget_reads_further_back(server: Server) -> None:
    await server.talk(1, 40)
    for tokens in (2_000, 4_000, 16_000, 100_000):
        server.core.cache.drop(scope())
        cold = await server.assemble(tokens)
        reads = server.store.calls["messages"]
        warm = await server.assemble(tokens)
        assert server.store.calls["messages"] == reads
        assert warm.joined.context_hash == cold.joined.context_hash
    server.core.cache.drop(scope())
    small = await server.shown(2_000)
    grown = await server.shown(8_000)
    assert len(small) < len(grown)
    assert grown[-len(small) :] == small


async def test_this_turns_prompt_takes_of_the_budget(server: Server) -> None:
    await server.ingest("a")
    tokens = (await server.assemble()).tokens
    assert cell(128) == 128
    for prompt, outcome in ((128 - tokens, FITS), (128 - tokens + 1, OVER_BUDGET)):
        done = await server.assemble(128, prompt=Prompt((), prompt))
        assert (done.outcome, done.tokens, done.prompt_tokens) == (outcome, tokens, prompt)
        assert done.available == 128 - prompt
        assert done.estimated == in_model(tokens, 1.0), "it is sent beside the list"
