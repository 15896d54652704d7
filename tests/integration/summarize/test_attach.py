"""A harness lends its model. What it is asked, what becomes of its answers, and who is asked where
it cannot. See docs/semantics.md#summarizers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from contextengine import types as t
from contextengine_server.runtime import wanted

from ..harness import ALICE, BOB, TOKENS, Clock, House, budget, house, texts
from .lending import SECRET, attached, compacting, talk, until, written_by
from .provider import GOOD, answer, provider

FOCUS = "dwell on what was decided about the billing tables"
pytestmark = pytest.mark.asyncio(loop_scope="module")

ONE_STEP = {"engine.dag.freshTailTurns": 1, "summarizer.remake": False}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    """One service for the whole module, whose breaker stays closed however many answers are bad."""
    patient = {"engine.dag.summarizerBreaker.failureThreshold": 1_000}
    async with house(tmp_path_factory.mktemp("shared"), **ONE_STEP, **patient) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def at(shared: House) -> AsyncIterator[House]:
    """The shared service, with nobody attached when the test is over."""
    yield shared
    await until(lambda: not shared.app.core.attached("default"))


async def test_a_harness_writes_the_summary(at: House) -> None:
    session = await talk(at)
    before = await at.client.get_status(session=session)
    async with attached(at) as harness, compacting(at, session, focus=FOCUS) as done:
        job = await harness.job()
        await harness.does(
            job,
            model="claude-x",
            stop_reason="end_turn",
            usage={"input_tokens": 900, "output_tokens": 30},
        )
    assert done.result().summaries
    assert await written_by(at, session) == ["runtime:claude-x"]
    shown = texts((await at.client.assemble(session=session, budget=budget(4_000))).items)
    assert any(GOOD in text for text in shown)
    assert not any(FOCUS in text for text in shown)
    assert job.job_id
    assert job.lease_id
    assert job.lease_expire_time.ToMilliseconds() > at.app.core.clock_ms()
    assert (job.purpose, job.agent_id) == ("context-engine.compaction", "agent")
    assert job.session_id == session.session_id
    assert (job.model, job.HasField("temperature")) == ("", False)
    assert job.max_output_tokens > 1_000
    assert "(operational)" in job.system_prompt
    assert FOCUS not in job.system_prompt
    (asked,) = texts(job.messages)
    assert job.messages[0].role == t.ROLE_USER
    assert "Step 0" in asked
    assert FOCUS in asked
    assert SECRET not in asked
    assert "[redacted]" in asked
    await until(lambda: not at.app.core.attached("default"))
    status = (await at.client.get_status(session=session)).summarizers
    assert (status.attached_harness_count, status.open_job_count) == (0, 0)
    assert status.tokens_last_hour - before.summarizers.tokens_last_hour == 930


async def test_without_a_harness_the_next_is_asked(tmp_path: Path) -> None:
    async with provider(answer()) as made:
        endpoint = {"name": "local", "base_url": made.base_url, "model": "small", "retries": 0}
        async with house(tmp_path, **ONE_STEP, **{"summarizer.endpoints": [endpoint]}) as at:
            session = await talk(at)
            async with compacting(at, session):
                pass
            assert await written_by(at, session) == ["local:small"]
            # And with one, the endpoint is not asked any more.
            other = await talk(at)
            async with attached(at) as harness, compacting(at, other):
                await harness.does(await harness.job())
            assert await written_by(at, other) == ["runtime"]
            assert len(made.requests) == 1


async def test_the_order_is_the_settings(tmp_path: Path) -> None:
    async with provider(answer()) as made:
        endpoint = {"name": "local", "base_url": made.base_url, "model": "small", "retries": 0}
        settings = {
            "summarizer.endpoints": [endpoint],
            "summarizer.order": ["endpoints", "runtime"],
        }
        async with house(tmp_path, **ONE_STEP, **settings) as at, attached(at) as harness:
            session = await talk(at)
            async with compacting(at, session):
                pass
            assert await written_by(at, session) == ["local:small"]
            await harness.was_told_nothing()


async def test_several_harnesses_share_the_work(at: House) -> None:
    sessions = [await talk(at) for _ in range(2)]
    async with attached(at) as first, attached(at) as second:
        status = await at.client.get_status(session=sessions[0])
        assert status.summarizers.attached_harness_count == 2
        async with compacting(at, sessions[0]), compacting(at, sessions[1]):
            jobs = [await first.job(), await second.job()]
            assert {job.session_id for job in jobs} == {one.session_id for one in sessions}
            await second.does(jobs[1])
            await first.does(jobs[0])
    assert [await written_by(at, session) for session in sessions] == [["runtime"], ["runtime"]]


async def test_a_harness_has_as_many_jobs_as_it_takes(at: House) -> None:
    sessions = [await talk(at) for _ in range(3)]
    async with (
        attached(at, max_concurrent_jobs=2) as harness,
        compacting(at, sessions[0]),
        compacting(at, sessions[1]),
        compacting(at, sessions[2]),
    ):
        first, second = await harness.job(), await harness.job()
        async with asyncio.timeout(30):
            while (await at.client.get_status(session=sessions[0])).summarizers.open_job_count < 3:
                await asyncio.sleep(0.02)
        # Nothing else comes before one of the two is answered: the receipt is what is heard next.
        await harness.does(second)
        third = await harness.job()
        await harness.does(first)
        await harness.does(third)
    assert len({first.job_id, second.job_id, third.job_id}) == 3


@pytest.mark.parametrize(
    "hello",
    [{"agent_id": "another"}, {"max_input_tokens": 100}],
    ids=["another agent's", "too small"],
)
async def test_work_that_a_harness_does_not_take_goes_to_the_next(
    at: House, hello: dict[str, Any]
) -> None:
    session = await talk(at)
    async with attached(at, **hello) as harness:
        async with compacting(at, session):
            pass
        await harness.was_told_nothing()
    assert set(await written_by(at, session)) == {"extractive"}


async def test_of_two_the_one_that_takes_the_work_is_asked(at: House) -> None:
    session = await talk(at)
    async with (
        attached(at, max_input_tokens=100) as small,
        attached(at, agent_id="agent", max_input_tokens=100_000) as large,
        compacting(at, session),
    ):
        await large.does(await large.job())
        await small.was_told_nothing()
    assert await written_by(at, session) == ["runtime"]


async def test_the_model_wished_for_is_named_and_goes_to_who_lends_it(at: House) -> None:
    session = await talk(at)
    options = json.dumps({"compactionModel": "runtime:big"}).encode()
    await at.client.engines.assign(scope=session, engine_id="dag", options_json=options)
    async with (
        attached(at, models=["small"]) as small,
        attached(at, models=["small", "big"]) as big,
        compacting(at, session),
    ):
        job = await big.job()
        assert job.model == "big"
        await big.does(job, model="big-2026")
        await small.was_told_nothing()
    assert await written_by(at, session) == ["runtime:big-2026"]


async def test_a_harness_that_names_no_model_takes_any_wish(at: House) -> None:
    session = await talk(at)
    options = json.dumps({"compactionModel": "runtime:big"}).encode()
    await at.client.engines.assign(scope=session, engine_id="dag", options_json=options)
    async with attached(at) as harness, compacting(at, session):
        job = await harness.job()
        assert job.model == "big"
        await harness.does(job)
    assert await written_by(at, session) == ["runtime:big"]


async def test_a_harness_gets_work_of_its_own_tenant_only(tmp_path: Path) -> None:
    async with house(tmp_path, token=ALICE, **{"auth.tokens": TOKENS}, **ONE_STEP) as at:
        session = await talk(at)
        async with attached(at, token=BOB) as bobs:
            async with compacting(at, session):
                pass
            assert await written_by(at, session) == ["extractive"]
            other = await talk(at)
            async with attached(at, token=ALICE) as alices, compacting(at, other):
                job = await alices.job()
                # Another tenant that knows both names has no such job.
                await bobs.answer(job, "Bob was here.")
                refused = await bobs.receipt()
                assert (refused.job_id, refused.accepted) == (job.job_id, False)
                assert "there is no such job" in refused.reason
                await bobs.say(keep_lease={"job_id": job.job_id, "lease_id": job.lease_id})
                assert (await bobs.cancelled()).job_id == job.job_id
                await alices.does(job)
            assert await written_by(at, other) == ["runtime"]
            await bobs.was_told_nothing()


BAD = {
    "empty": " \n",
    "refusal": "I'm sorry, but I cannot help with that.",
    "error text": "Error: 500 internal server error",
    "longer than the source": "and so on and on " * 3_000,
    "longer than any summary": "x" * 100_001,
    "thoughts alone": "<think>where was I",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
async def test_what_is_no_summary_is_asked_again_and_never_committed(at: House, text: str) -> None:
    session = await talk(at)
    forms = []
    async with attached(at) as harness, compacting(at, session):
        for _ in range(4):
            job = await harness.job()
            forms.append("Fragments" in job.system_prompt)
            await harness.does(job, text)
    assert forms == [False, False, False, True]
    assert await written_by(at, session) == ["extractive"]


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ({"stop_reason": "max_tokens"}, [False, True]),
        ({"stop_reason": "refusal"}, [False, False, False, True]),
        ({"stop_reason": "tool_calls"}, [False, False, False, True]),
        ({"text": "", "error": "invalid_key"}, [False]),
        ({"text": "", "error": "the zebra crossed the street"}, [False]),
    ],
)
async def test_an_answer_that_is_none_moves_on_as_with_any_model(
    at: House, said: dict[str, str], asked: list[bool], capsys: pytest.CaptureFixture[str]
) -> None:
    session = await talk(at)
    forms = []
    async with attached(at) as harness, compacting(at, session):
        for _ in asked:
            job = await harness.job()
            forms.append("Fragments" in job.system_prompt)
            await harness.does(job, **{"text": GOOD, **said})
    assert forms == asked
    assert await written_by(at, session) == ["extractive"]
    logged = capsys.readouterr().err
    assert "degraded" in logged
    assert "zebra" not in logged
    assert GOOD not in logged


async def test_a_failure_that_may_pass_is_tried_again_and_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(wanted, "POLL_S", 0.03)  # a clock that is moved by hand wakes nobody
    async with house(tmp_path, clock=clock, **ONE_STEP) as at:
        session = await talk(at)
        async with attached(at) as harness, compacting(at, session):
            leases = set()
            for _ in range(3):
                job = await harness.job()
                leases.add(job.lease_id)
                await harness.does(job, "", error="rate_limited", retryable=True)
                clock.advance(2)
        assert len(leases) == 3
        assert await written_by(at, session) == ["extractive"]


async def test_an_answer_to_nothing_is_told_so_and_the_stream_goes_on(at: House) -> None:
    async with attached(at) as harness:
        await harness.say(completion={"job_id": "none", "lease_id": "none", "text": "hello"})
        receipt = await harness.receipt()
        assert (receipt.job_id, receipt.accepted) == ("none", False)
        assert receipt.reason == "there is no such job: it was cancelled or given up"
        await harness.say(keep_lease={"job_id": "none", "lease_id": "none"})
        cancel = await harness.cancelled()
        assert cancel.job_id == "none"
        assert "the lease is lost" in cancel.reason
        await harness.leave()
        assert (await harness.stream.code()).name == "OK"


async def test_receipts_are_all_told_before_the_stream_ends(at: House) -> None:
    async with attached(at) as harness:
        for n in range(300):
            await harness.say(completion={"job_id": f"j{n}", "lease_id": "l", "text": "x"})
        await harness.stream.done_writing()
        assert [(await harness.receipt()).job_id for _ in range(300)] == [
            f"j{n}" for n in range(300)
        ]
