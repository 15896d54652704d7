"""A host that can lend its model only within a call of its own comes by with Maintain: it takes
jobs as data, and brings the results. See docs/semantics.md#summarizers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine_proto.v1 import runtime_pb2 as pb

from ..harness import ALICE, BOB, TOKENS, House, budget, house, problem, ref
from .lending import PATIENCE_S, attached, compacting, talk, written_by
from .provider import GOOD

pytestmark = pytest.mark.asyncio(loop_scope="module")

LENDS = t.HostInfo(host_id="openclaw", capabilities=["compact", "maintain", "lends-in-maintain"])
ONE_STEP = {"engine.dag.freshTailTurns": 1, "summarizer.remake": False}
PATIENT = {"engine.dag.summarizerBreaker.failureThreshold": 1_000}
NO_END = {"summarizer.runtime.wait": "1h"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def at(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    """A service where jobs wait for hosts that come by, however long it takes."""
    path = tmp_path_factory.mktemp("visits")
    async with house(path, **ONE_STEP, **PATIENT, **NO_END) as made:
        yield made


async def come_by(
    at: House, session: t.SessionRef, client: Any = None, **more: Any
) -> t.MaintainResponse:
    """One Maintain of the session's host, which waits for a job as long as one may come."""
    more.setdefault("lend", pb.AttachRequest.Hello(host_id="openclaw"))
    if more["lend"] is None:
        del more["lend"]
    else:
        more["wait"] = timedelta(seconds=PATIENCE_S)
    said = await (client or at.client).maintain(session, timeout=2 * PATIENCE_S, **more)
    assert isinstance(said, t.MaintainResponse)
    return said


async def begun(at: House, session: t.SessionRef) -> None:
    """Waits until a compaction of the session has a job that nobody took."""
    async with asyncio.timeout(PATIENCE_S):
        while not (await at.client.get_status(session)).summarizers.open_job_count:
            await asyncio.sleep(0.05)


def done(job: pb.AttachResponse.Job, text: str = GOOD, **more: Any) -> pb.AttachRequest.Completion:
    return pb.AttachRequest.Completion(job_id=job.job_id, lease_id=job.lease_id, text=text, **more)


async def lending(at: House, client: Any = None) -> t.SessionRef:
    """A session, worth a summary, of a host that lends its model when it comes by."""
    session = await talk(at, client)
    await (client or at.client).bootstrap(session, host=LENDS)
    return session


async def test_a_host_that_comes_by_writes_the_summary(at: House) -> None:
    session = await lending(at)
    async with compacting(at, session) as compaction:
        await begun(at, session)
        (job,) = (visit := await come_by(at, session)).jobs
        assert not visit.changed
        assert not visit.receipts
        assert visit.more_jobs
        assert (job.agent_id, job.session_id) == ("agent", session.session_id)
        assert job.lease_expire_time.ToMilliseconds() > at.app.core.clock_ms()
        last = await come_by(at, session, completions=[done(job, model="claude-x")])
        while last.more_jobs or last.jobs:  # the job was the only one
            assert not last.jobs
            last = await come_by(at, session)
        assert (await compaction).summaries
    assert await written_by(at, session) == ["runtime:claude-x"]


async def test_the_end_of_a_turn_says_that_a_job_waits(at: House) -> None:
    session = await lending(at)
    small = budget(1_500)
    said = await at.client.after_turn(session, budget=small)
    assert said.compaction_queued
    assert said.job_wait.ToTimedelta() == timedelta(hours=1)
    visit = await come_by(at, session)
    while visit.jobs or visit.more_jobs:
        visit = await come_by(at, session, completions=[done(job) for job in visit.jobs])
        assert all(receipt.accepted for receipt in visit.receipts)
    assert set(await written_by(at, session)) == {"runtime"}
    # A host that did not say so is not waited for.
    other = await talk(at)
    said = await at.client.after_turn(other, budget=small)
    assert said.compaction_queued
    assert not said.HasField("job_wait")
    async with asyncio.timeout(PATIENCE_S):
        while (await at.client.get_status(other)).jobs:
            await asyncio.sleep(0.05)
    assert set(await written_by(at, other)) == {"extractive"}


async def test_a_stream_of_its_agent_may_take_what_waits_for_a_visit(at: House) -> None:
    session = await lending(at)
    async with compacting(at, session):
        await begun(at, session)
        async with attached(at, agent_id="agent") as harness:
            await harness.does(await harness.job())
    assert await written_by(at, session) == ["runtime"]


async def test_a_job_of_a_visit_may_be_answered_on_a_stream_and_once(at: House) -> None:
    session = await lending(at)
    async with compacting(at, session):
        await begun(at, session)
        (job,) = (await come_by(at, session)).jobs
        async with attached(at) as harness:
            await harness.does(job)
        visit = await come_by(at, session, lend=None, completions=[done(job), done(job)])
        assert [receipt.accepted for receipt in visit.receipts] == [False, False]
        assert all(receipt.reason for receipt in visit.receipts)


async def test_nothing_to_do_is_answered_at_once(at: House) -> None:
    session = await lending(at)
    visit = await come_by(at, session)
    assert (list(visit.jobs), visit.more_jobs, visit.changed) == ([], False, False)


async def test_a_host_that_does_not_come_is_waited_for_once(tmp_path: Any) -> None:
    waits = {"summarizer.runtime.wait": "200ms"}
    async with house(tmp_path, **ONE_STEP, **PATIENT, **waits) as at:
        session = await lending(at)
        async with compacting(at, session):
            pass
        assert set(await written_by(at, session)) == {"extractive"}
        # The service goes on without it, until it gives a sign of life.
        said = await at.client.after_turn(session, budget=budget(200))
        if said.compaction_queued:
            assert said.job_wait.ToTimedelta() == timedelta(milliseconds=200)


async def test_jobs_stay_within_the_tenant_and_the_agent(tmp_path: Any) -> None:
    settings = {**ONE_STEP, **PATIENT, **NO_END, "auth.tokens": TOKENS}
    async with house(tmp_path, token=ALICE, **settings) as at:
        bob, session = at.client_of(BOB), await lending(at)
        strangers = t.SessionRef(agent_id="other", session_id="s")
        await at.client.bootstrap(strangers, host=LENDS)
        await bob.bootstrap(session, host=LENDS)
        async with compacting(at, session):
            await begun(at, session)
            assert not (await come_by(at, session, bob)).jobs
            assert not (await come_by(at, strangers)).jobs
            (job,) = (await come_by(at, session)).jobs
            stolen = await come_by(at, session, bob, lend=None, completions=[done(job, "stolen")])
            assert not stolen.receipts[0].accepted
            await come_by(at, session, lend=None, completions=[done(job)])
        assert await written_by(at, session) == ["runtime"]


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"lend": {"agent_id": "another"}}, "lend.agent_id"),
        ({"lend": {"max_concurrent_jobs": -1}}, "lend.max_concurrent_jobs"),
        ({"lend": {}, "wait": {"seconds": 61}}, "wait"),
        ({"lend": {}, "wait": {"seconds": -1}}, "wait"),
        ({"wait": {"seconds": 1}}, "wait"),
        ({"completions": [{"job_id": "j"}]}, "completions[0].lease_id"),
        ({"completions": [{"lease_id": "l"}]}, "completions[0].job_id"),
        ({"completions": [{"job_id": "j", "lease_id": "l"}] * 101}, "completions"),
        (
            {"completions": [{"job_id": "j", "lease_id": "l", "usage": {"input_tokens": -1}}]},
            "completions[0].usage.input_tokens",
        ),
    ],
)
async def test_what_a_visitor_says_wrong_is_named(
    at: House, fields: dict[str, Any], wrong: str
) -> None:
    await at.client.bootstrap(ref("named"))
    with pytest.raises(ContextEngineError) as caught:
        await at.client.maintain(ref("named"), **fields)
    assert problem(caught.value) == ("INVALID_ARGUMENT", "INVALID_FIELD", [wrong])
