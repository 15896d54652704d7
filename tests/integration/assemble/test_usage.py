"""An assembly's id and ReportUsage. Estimates are judged; what is learned comes into force only
with a compaction or UpdateModel; a refusal's limit bounds the window. See
docs/semantics.md#models-and-usage."""

from __future__ import annotations

import grpc
import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from tests.integration.harness import House, budget, problem

from .asking import ask, hashes, quiet, store, talk

pytestmark = pytest.mark.asyncio(loop_scope="module")
Overflow = t.ReportUsageRequest.Overflow


async def test_an_estimate_is_judged_by_what_was_billed(
    shared: House, session: t.SessionRef
) -> None:
    await store(shared, session, talk(30, 60))
    sent = await ask(shared, session)
    billed = round(sent.estimated_tokens * 1.5)
    usage = t.Usage(
        input_tokens=billed - 700, cache_read_tokens=500, cache_write_tokens=200, output_tokens=40
    )
    said = await shared.client.report_usage(
        session, assembly_id=sent.assembly_id, usage=usage, other_tokens=0
    )
    assert said.estimated_tokens == sent.estimated_tokens
    assert 1.05 < said.learned_factor < 1.2  # a fifth of the way from 1 to 1.5
    status = await shared.client.get_status(session)
    assert (status.last_prompt_tokens, status.last_completion_tokens) == (billed, 40)
    assert status.total_usage.cache_read_tokens == 500
    assert (status.model_factor, status.learned_factor) == (1.0, said.learned_factor)


async def test_the_estimate_is_of_the_assembly_named(shared: House, session: t.SessionRef) -> None:
    """Also of one that was sent as a delta, before later ones, and before a restart."""
    first = await ask(shared, session, ingest=talk(15, 60))
    second = await ask(
        shared, session, ingest=talk(15, 60, "n"), known_context_hash=first.context_hash
    )
    assert first.assembly_id != second.assembly_id
    await shared.restart()
    for sent in (second, first):
        said = await shared.client.report_usage(
            session, assembly_id=sent.assembly_id, usage=t.Usage(input_tokens=10)
        )
        assert said.estimated_tokens == sent.estimated_tokens


async def test_what_is_learned_waits_for_a_compaction(shared: House, session: t.SessionRef) -> None:
    await store(shared, session, talk(30, 60))
    await quiet(shared, session)
    sent = await ask(shared, session, budget=budget(3_000))
    for _ in range(4):
        said = await shared.client.report_usage(
            session,
            assembly_id=sent.assembly_id,
            usage=t.Usage(input_tokens=sent.estimated_tokens * 2),
            other_tokens=0,
        )
    after = await ask(shared, session, budget=budget(3_000))
    assert (after.budget, hashes(after)) == (sent.budget, hashes(sent))
    assert after.context_projection == sent.context_projection
    assert (await shared.client.compact(session, force=True, budget=budget(3_000))).summaries
    compacted = await ask(shared, session, budget=budget(3_000))
    assert compacted.budget.model_factor == said.learned_factor > 1.5
    assert compacted.estimated_tokens <= 3_000


async def test_or_for_update_model(shared: House, session: t.SessionRef) -> None:
    await store(shared, session, talk(30, 60))
    sent = await ask(shared, session)
    said = await shared.client.report_usage(
        session,
        assembly_id=sent.assembly_id,
        usage=t.Usage(input_tokens=sent.estimated_tokens * 2),
        other_tokens=0,
    )
    assert (await ask(shared, session)).budget.model_factor == 1.0
    assert (await shared.client.update_model(session)).model_factor == said.learned_factor
    assert (await ask(shared, session)).budget.model_factor == said.learned_factor
    # Another model is another tokenizer: what was learned of this one does not hold for it.
    other = await ask(shared, session, model="claude-sonnet-4-5")
    assert other.budget.model_factor == 1.22
    assert (await shared.client.update_model(session, model="gpt-4o")).model_factor == 1.0


async def test_without_an_assembly_nothing_is_judged(shared: House, session: t.SessionRef) -> None:
    await store(shared, session, talk(2))
    said = await shared.client.report_usage(session, usage=t.Usage(input_tokens=100_000))
    assert (said.estimated_tokens, said.learned_factor) == (0, 1.0)
    assert (await shared.client.get_status(session)).last_prompt_tokens == 100_000


@pytest.mark.parametrize(
    "name",
    [
        "a1",
        "a1.1.x.00",
        "a1.1.-5.00",
        "b1.1.100.00",
        "a1.1.1e3.00",
        "a1." + "9" * 400,
        "a2.1.100.00",
        "a2.1.100.0.0.x.00",
        "a2.1." + "9" * 17 + ".0.0.3.00",
    ],
)
async def test_a_name_that_is_none_of_ours(shared: House, session: t.SessionRef, name: str) -> None:
    await store(shared, session, talk(2))
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await shared.stub.ReportUsage(
            t.ReportUsageRequest(session=session, assembly_id=name, usage=t.Usage(input_tokens=1))
        )
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "assembly_id" in (refused.value.details() or "")


@pytest.mark.parametrize(
    ("overflow", "limit"),
    [
        (Overflow(limit_tokens=90_000, observed_tokens=95_000), 90_000),
        (Overflow(text="This model's maximum context length is 32768 tokens. However, …"), 32_768),
        (Overflow(text="prompt is too long: 208310 tokens > 100000 maximum"), 100_000),
        (Overflow(text="it was too much"), 0),
    ],
)
async def test_a_refusal_bounds_the_window(
    shared: House, session: t.SessionRef, overflow: Overflow, limit: int
) -> None:
    await store(shared, session, talk(2))
    said = await shared.client.report_usage(session, overflow=overflow)
    assert said.served_window == limit
    report = (await ask(shared, session)).budget
    assert report.window == (limit or 128_000)
    assert report.window_source == ("served" if limit else "default")
    # The smallest that was seen counts; another model is served otherwise.
    await shared.client.report_usage(session, overflow=Overflow(limit_tokens=120_000))
    assert (await ask(shared, session)).budget.window == min(limit or 120_000, 120_000)
    await shared.client.update_model(session, model="gpt-4o")
    assert (await ask(shared, session)).budget.window_source == "model"


async def test_a_report_is_counted_once(shared: House, session: t.SessionRef) -> None:
    await store(shared, session, talk(2))
    for _ in range(2):
        await shared.stub.ReportUsage(
            t.ReportUsageRequest(session=session, request_id="r1", usage=t.Usage(input_tokens=70))
        )
    assert (await shared.client.get_status(session)).total_usage.input_tokens == 70


async def test_a_turns_usage_counts_as_reported(shared: House, session: t.SessionRef) -> None:
    await store(shared, session, talk(30, 60))
    sent = await ask(shared, session)
    await shared.client.after_turn(
        session,
        talk(1, 3, "n"),
        usage=t.Usage(input_tokens=sent.estimated_tokens * 2),
        assembly_id=sent.assembly_id,
        other_tokens=0,
    )
    assert (await shared.client.get_status(session)).learned_factor > 1.1


async def test_a_final_budget_may_say_what_is_sent_besides(
    shared: House, session: t.SessionRef
) -> None:
    """A host that works its budget out itself: nothing is subtracted, and all of the prompt is
    known."""
    await store(shared, session, talk(30, 60))
    alone = await ask(shared, session, budget=t.Budget(message_tokens=3_000))
    sent = await ask(shared, session, budget=t.Budget(message_tokens=3_000, other_tokens=5_000))
    assert hashes(sent) == hashes(alone)
    assert (sent.budget.available, sent.estimated_tokens) == (3_000, alone.estimated_tokens)
    billed = round(sent.estimated_tokens * 1.5) + 5_000
    usage = t.Usage(input_tokens=billed)
    said = await shared.client.report_usage(session, assembly_id=sent.assembly_id, usage=usage)
    assert said.estimated_tokens == sent.estimated_tokens + 5_000
    assert 1.05 < said.learned_factor < 1.2
    with pytest.raises(ContextEngineError) as caught:
        await shared.client.assemble(session, budget=t.Budget(other_tokens=5_000))
    assert problem(caught.value) == (
        "INVALID_ARGUMENT",
        "CONTRADICTORY_FIELDS",
        ["budget.window", "budget.other_tokens"],
    )
