"""Work has a stored id and a lease, and outlives the stream and the server; its result is accepted
once. See docs/semantics.md#summarizers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import orjson
import pytest
import pytest_asyncio
from msgspec.structs import asdict

from contextengine import types as t
from contextengine.errors import from_rpc_error
from contextengine.messages import user
from contextengine_server.runtime import wanted
from contextengine_server.store.model_jobs import JobOutcome
from contextengine_server.store.sqlite import SqliteStore
from contextengine_server.summarize.models.runtime import Completion

from ..harness import Clock, House, budget, house
from .lending import Harness, attached, compacting, first_of, talk, until, written_by
from .provider import GOOD

pytestmark = pytest.mark.asyncio(loop_scope="module")

ONE_STEP = {"engine.dag.freshTailTurns": 1, "summarizer.remake": False}
"""No harness is given a summary to make again that an earlier test left behind."""
LOST = "the lease is lost: the job was handed out again"
GONE = "there is no such job: it was cancelled or given up"
HAS_ONE = "the job has its result: one was accepted before"


@pytest.fixture(autouse=True)
def looked_at_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that is moved by hand wakes nobody."""
    monkeypatch.setattr(wanted, "POLL_S", 0.03)


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory, clock: Clock) -> AsyncIterator[House]:
    """One service for the whole module, that lives by `clock`."""
    patient = {"engine.dag.summarizerBreaker.failureThreshold": 1_000}
    async with house(tmp_path_factory.mktemp("shared"), clock=clock, **ONE_STEP, **patient) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def at(shared: House) -> AsyncIterator[House]:
    """The shared service, with nobody attached when the test is over."""
    yield shared
    await until(lambda: not shared.app.core.attached("default"))


@asynccontextmanager
async def lent(
    at: House, session: t.SessionRef
) -> AsyncIterator[tuple[Harness, asyncio.Task[t.CompactResponse]]]:
    """A harness, and a compaction that it is asked for. It may leave before the compaction is
    over."""
    async with attached(at) as harness, compacting(at, session) as done:
        yield harness, done


async def kept(harness: Harness, job: t.AttachResponse.Job) -> None:
    """Keeps a lease, and sees that it was: what is said is heard in order, so that with an answer
    to what came after it the lease was kept."""
    await harness.say(keep_lease={"job_id": job.job_id, "lease_id": job.lease_id})
    await harness.say(completion={"job_id": "none", "lease_id": "none"})
    assert (await harness.receipt()).reason == GONE


async def test_a_result_is_accepted_once(at: House) -> None:
    session = await talk(at)
    async with attached(at) as harness:
        async with compacting(at, session):
            job = await harness.job()
            await harness.answer(job)
            await harness.answer(job, "Another text for the same job.")
            first, second = await harness.receipt(), await harness.receipt()
        assert (first.accepted, second.accepted) == (True, False)
        assert second.reason == HAS_ONE
        # Also long after its summary was committed.
        await harness.answer(job)
        assert (await harness.receipt()).reason == HAS_ONE
    (summary,) = (await at.export(session)).summaries
    assert summary.text == GOOD


async def test_a_result_is_accepted_on_any_stream_of_the_tenant(at: House) -> None:
    session = await talk(at)
    async with lent(at, session) as (first, _):
        job = await first.job()
        async with attached(at) as second:
            await first.leave()
            await second.does(job)
    assert await written_by(at, session) == ["runtime"]


async def test_a_harness_that_comes_back_in_time_has_its_job_still(at: House) -> None:
    session = await talk(at)
    async with lent(at, session) as (harness, done):
        job = await harness.job()
        harness.stream.cancel()
        await until(lambda: not at.app.core.attached("default"))
        assert not done.done()
        async with attached(at, channel=await at.open_channel()) as again:
            await again.say(keep_lease={"job_id": job.job_id, "lease_id": job.lease_id})
            await again.does(job)
    assert await written_by(at, session) == ["runtime"]


async def test_a_harness_that_does_not_come_back_is_waited_for_until_its_lease_ends(
    at: House, clock: Clock
) -> None:
    session = await talk(at)
    async with lent(at, session) as (harness, done):
        await harness.job()
        harness.stream.cancel()
        await until(lambda: not at.app.core.attached("default"))
        assert not done.done()
        clock.advance(61)
    assert await written_by(at, session) == ["extractive"]


async def test_a_lease_that_ran_out_gives_the_job_to_another_and_the_first_comes_too_late(
    at: House, clock: Clock
) -> None:
    session = await talk(at)
    async with lent(at, session) as (slow, _), attached(at) as other:
        job, slow = await first_of(slow, other)
        clock.advance(61)
        again, heir = await first_of(slow, other)
        assert again.job_id == job.job_id
        assert again.lease_id != job.lease_id
        await slow.answer(job, "Too late.")
        late = await slow.receipt()
        assert (late.accepted, late.reason) == (False, LOST)
        await heir.does(again)
    (summary,) = (await at.export(session)).summaries
    assert summary.text == GOOD


async def test_keeping_a_lease_extends_it(at: House, clock: Clock) -> None:
    session = await talk(at)
    async with lent(at, session) as (harness, _):
        job = await harness.job()
        for _ in range(3):
            clock.advance(40)
            await kept(harness, job)
        await harness.does(job)
    assert await written_by(at, session) == ["runtime"]


async def test_a_lost_lease_cannot_be_kept(at: House, clock: Clock) -> None:
    session = await talk(at)
    async with lent(at, session) as (harness, _):
        job = await harness.job()
        clock.advance(61)
        again = await harness.job()
        assert again.job_id == job.job_id
        assert again.lease_expire_time.ToMilliseconds() == clock() + 60_000
        await harness.say(keep_lease={"job_id": job.job_id, "lease_id": job.lease_id})
        assert (await harness.cancelled()).job_id == job.job_id
        await harness.does(again)


async def test_a_job_is_handed_out_three_times_at_most(at: House, clock: Clock) -> None:
    session = await talk(at)
    async with lent(at, session) as (harness, _):
        leases = set()
        for _ in range(3):
            leases.add((await harness.job()).lease_id)
            clock.advance(61)
        assert len(leases) == 3
    assert await written_by(at, session) == ["extractive"]


async def test_after_its_deadline_a_job_is_cancelled_and_the_next_is_asked(
    at: House, clock: Clock
) -> None:
    session = await talk(at)
    async with lent(at, session) as (harness, _):
        job = await harness.job()
        for _ in range(7):
            clock.advance(38)
            await kept(harness, job)
        clock.advance(38)
        cancel = await harness.cancelled()
        assert cancel.job_id == job.job_id
        assert cancel.reason == "no harness answered within 300 s"
    assert await written_by(at, session) == ["extractive"]


async def test_a_job_that_nobody_waits_for_is_cancelled(at: House) -> None:
    session = await talk(at)
    async with attached(at) as harness:
        call = asyncio.ensure_future(
            at.client.compact(session=session, budget=budget(4_000), force=True)
        )
        job = await harness.job()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        cancel = await harness.cancelled()
        assert (cancel.job_id, cancel.reason) == (job.job_id, "nobody waits for it any more")
        await harness.answer(job)
        assert (await harness.receipt()).reason == GONE
        # It has room again.
        async with compacting(at, session):
            again = await harness.job()
            assert again.job_id != job.job_id
            await harness.does(again)
    assert await written_by(at, session) == ["runtime"]


async def test_a_deleted_session_takes_its_job_along(at: House) -> None:
    session = await talk(at)
    async with attached(at) as harness:
        call = asyncio.ensure_future(
            at.client.compact(session=session, budget=budget(4_000), force=True)
        )
        job = await harness.job()
        await at.client.sessions.delete(session)
        await harness.answer(job)
        assert (await harness.receipt()).reason == GONE
        await asyncio.gather(call, return_exceptions=True)
    assert await at.app.store.model_leases.open_count("default") == 0


async def test_when_the_last_harness_leaves_what_waits_goes_to_the_next(at: House) -> None:
    sessions = [await talk(at) for _ in range(2)]
    async with attached(at) as harness, compacting(at, sessions[0]):
        job = await harness.job()
        async with compacting(at, sessions[1]):
            async with asyncio.timeout(30):
                while await at.app.store.model_leases.open_count("default") < 2:
                    await asyncio.sleep(0.02)
            await harness.leave()
        assert await written_by(at, sessions[1]) == ["extractive"]
        async with attached(at) as again:
            await again.does(job)
    assert await written_by(at, sessions[0]) == ["runtime"]


async def test_a_job_outlives_the_server(tmp_path: Path) -> None:
    """The background queues it again after the restart; who was working on it delivers to the next
    life."""
    async with house(tmp_path, **ONE_STEP, **{"engine.dag.contextThreshold": 0.1}) as at:
        session = await talk(at)
        async with (
            grpc.aio.insecure_channel(at.app.address) as channel,
            attached(at, channel=channel) as harness,
        ):
            await at.client.after_turn(session, [user("And now?")], budget=budget(4_000))
            job = await harness.job()
            await at.restart()
            with pytest.raises(grpc.RpcError) as ended:
                await harness.hears()
        error = from_rpc_error(ended.value)
        assert (error.code.name, error.reason) == ("UNAVAILABLE", "DRAINING")
        assert error.retry_after is not None
        async with attached(at) as again:
            await again.does(job, model="claude-x")
            async with asyncio.timeout(30):
                while not (written := await written_by(at, session)):
                    await asyncio.sleep(0.02)
        assert written[0] == "runtime:claude-x"
        assert (await at.export(session)).summaries[0].text == GOOD


async def test_a_result_that_nobody_took_is_there_after_a_restart(tmp_path: Path) -> None:
    """As where a server dies between the receipt and the commit, or another took the result: it is
    in the store."""
    async with house(tmp_path, **ONE_STEP, **{"engine.dag.contextThreshold": 0.1}) as at:
        session = await talk(at)
        async with (
            grpc.aio.insecure_channel(at.app.address) as channel,
            attached(at, channel=channel) as harness,
        ):
            await at.client.after_turn(session, [user("And now?")], budget=budget(4_000))
            job = await harness.job()
            await at.stop()
        store = SqliteStore(at.database)
        await store.open()
        done = orjson.dumps(asdict(Completion(GOOD, model="claude-x")))
        now = at.app.core.clock_ms()
        accepted = await store.model_leases.answer("default", job.job_id, job.lease_id, done, now)
        assert accepted is JobOutcome.ACCEPTED
        await store.close()
        await at.start()
        # No harness is attached any more, and none has to be.
        async with asyncio.timeout(30):
            while not (written := await written_by(at, session)):
                await asyncio.sleep(0.02)
        assert written[0] == "runtime:claude-x"
