"""UpdateModel, ReportUsage and GetStatus: what is known of a session's model, and what was
billed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contextengine import types as t
from contextengine.messages import assistant, tool_call, user
from tests.integration.harness import Clock, House, ref

Overflow = t.ReportUsageRequest.Overflow


async def test_the_model_binds_from_then_on(house: House) -> None:
    known = await house.client.update_model(ref(), model="claude-sonnet-4-5")
    assert (known.model, known.provider, known.revision) == ("claude-sonnet-4-5", "anthropic", 1)
    assert known.window > 0
    given = await house.client.update_model(ref(), window=77_000)
    assert (given.model, given.window) == ("claude-sonnet-4-5", 77_000)
    await house.restart()
    report = (await house.client.assemble(ref())).budget
    assert (report.window, report.window_source, report.window_assumed) == (77_000, "model", False)


async def test_the_same_request_again_changes_nothing(house: House) -> None:
    first = await house.client.update_model(ref(), model="gpt-5", request_id="r1")
    again = await house.client.update_model(ref(), model="gpt-5", request_id="r1")
    assert (first.revision, again.revision) == (1, 1)
    await house.client.report_usage(ref(), usage=t.Usage(input_tokens=5), request_id="u1")
    await house.client.report_usage(ref(), usage=t.Usage(input_tokens=5), request_id="u1")
    assert (await house.client.get_status(ref())).total_usage.input_tokens == 5


async def test_what_usage_teaches_waits_for_update_model(house: House) -> None:
    await house.client.update_model(ref(), model="some-model")
    assembly = await house.client.assemble(ref(), ingest=[user("words " * 4_000)])
    for _ in range(3):
        taught = await house.client.report_usage(
            ref(),
            usage=t.Usage(input_tokens=assembly.estimated_tokens * 2),
            assembly_id=assembly.assembly_id,
            other_tokens=0,
        )
    status = await house.client.get_status(ref())
    assert taught.estimated_tokens == assembly.estimated_tokens
    assert status.learned_factor == pytest.approx(taught.learned_factor)
    assert status.learned_factor > status.model_factor
    again = await house.client.assemble(ref())
    assert again.items == assembly.items
    assert again.context_projection.epoch == assembly.context_projection.epoch, (
        "it changes no assembly yet"
    )
    in_force = await house.client.update_model(ref())
    assert in_force.model_factor == pytest.approx(taught.learned_factor)


@pytest.mark.parametrize(
    "overflow",
    [
        Overflow(limit_tokens=30_000, observed_tokens=31_000),
        Overflow(
            text="This model's maximum context length is 30,000 tokens. However, you sent 31,000"
        ),
        Overflow(text="prompt is too long: 31000 tokens > 30000 maximum"),
    ],
)
async def test_a_refusal_says_what_the_provider_serves(
    house: House, overflow: t.ReportUsageRequest.Overflow
) -> None:
    await house.client.update_model(ref(), model="some-model", window=200_000)
    assert (await house.client.report_usage(ref(), overflow=overflow)).served_window == 30_000
    report = (await house.client.assemble(ref())).budget
    assert (report.window, report.window_source) == (30_000, "served")
    of_another = (await house.client.assemble(ref(), model="gpt-4o")).budget
    assert (of_another.window, of_another.window_source) == (128_000, "model")


@pytest.mark.parametrize(
    "text", ["", "no number", "9" * 1_000_000, "limit is " * 100_000, "maximum context length is 0"]
)
async def test_a_refusal_that_says_nothing_teaches_nothing(house: House, text: str) -> None:
    await house.client.ingest(ref(), user("x"))
    reply = await house.client.report_usage(ref(), overflow=Overflow(text=text))
    assert reply.served_window == 0


async def test_sums_stop_where_the_wire_ends(house: House) -> None:
    await house.client.ingest(ref(), user("x"))
    most = t.Usage(input_tokens=2**53, cost_micro_usd=2**53)
    await house.client.report_usage(ref(), usage=most)
    warm = house.app.core.cache.all()[0]
    usage = replace(warm.state.usage, input_tokens=2**63 - 2, cost_micro_usd=2**63 - 2)
    warm.state = replace(warm.state, usage=usage)
    await house.client.report_usage(ref(), usage=most)
    await house.restart()
    total = (await house.client.get_status(ref())).total_usage
    assert (total.input_tokens, total.cost_micro_usd) == (2**63 - 1, 2**63 - 1)


async def test_status_tells_how_the_session_is(clocked: House, clock: Clock) -> None:
    created = clock.ms
    await clocked.client.bootstrap(
        ref("s1", key="main"), model="gpt-5", provider="openai", window=40_000
    )
    clock.advance(3)
    await clocked.client.ingest_batch(
        ref(),
        [
            user("q1"),
            assistant(tool_calls=[tool_call("c1", "look"), tool_call("c2", "look")]),
            user("never mind"),
            assistant(tool_calls=[tool_call("c3", "look")]),
        ],
    )
    await clocked.restart()
    status = await clocked.client.get_status(ref("", key="main"))
    shown = sum(item.tokens for item in (await clocked.client.assemble(ref())).items)
    assert (status.session_id, status.session_key, status.current_for_key) == ("s1", "main", True)
    assert (status.revision, status.message_count, status.last_sequence) == (2, 4, 4)
    assert (status.message_tokens, status.summary_count, status.generation) == (shown, 0, 0)
    assert (status.pending_calls, status.abandoned_calls) == (1, 2)
    assert (status.model, status.provider, status.window, status.window_assumed) == (
        "gpt-5",
        "openai",
        40_000,
        False,
    )
    assert 0 < status.threshold_tokens < 40_000
    assert 0 < status.usage_percent < 100
    assert status.estimate_method == "tiktoken:o200k_base"
    assert status.create_time.ToMilliseconds() == created
    assert status.update_time.ToMilliseconds() == clock.ms
    assert (status.ended, list(status.jobs), status.HasField("engine_failure")) == (
        False,
        [],
        False,
    )


async def test_a_window_that_nobody_named_is_assumed(house: House) -> None:
    await house.client.ingest(ref(), user("x"))
    status = await house.client.get_status(ref())
    assert (status.window, status.window_assumed) == (128_000, True)


async def test_the_doctor_finds_nothing_wrong(house: House) -> None:
    await house.client.ingest(ref(), user("x"))
    reply = await house.client.engines.doctor(session=ref())
    assert reply.ok
    names = {check.name for check in reply.checks}
    assert {"store", "engine.default", "session.engine"} <= names
    assert all(check.found for check in reply.checks)
