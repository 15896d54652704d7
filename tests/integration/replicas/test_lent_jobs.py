"""Three servers over one PostgreSQL: a harness that is attached to one does jobs of sessions on the
others. See docs/scaling.md#what-several-servers-share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from contextengine import types as t
from contextengine_server.health import lenders
from contextengine_server.runtime import wanted
from tests import postgres
from tests.integration.harness import ALICE, BOB, PATIENCE_S, TOKENS, House, house
from tests.integration.summarize.lending import (
    attached,
    compacting,
    first_of,
    talk,
    written_by,
)
from tests.integration.summarize.provider import GOOD
from tests.integration.summarize.test_visits import begun, come_by, done, lending

pytestmark = pytest.mark.asyncio(loop_scope="module")

ONE_STEP = {"engine.dag.freshTailTurns": 1, "summarizer.remake": False}


@pytest.fixture(autouse=True)
def looked_at_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """What wakes whoever waits is what servers tell each other, and nothing else."""
    monkeypatch.setattr(wanted, "POLL_S", 600)
    monkeypatch.setattr(wanted, "TELL_S", 600)
    monkeypatch.setattr(lenders, "BEAT_S", 600)


class Three:
    """Servers over one database, the first of which is asked."""

    def __init__(self, houses: Sequence[House]) -> None:
        self.asked, self.second, self.third = houses

    async def known(self, count: int, tenant: str = "default") -> None:
        """Waits until every server knows that so many harnesses are attached."""
        async with asyncio.timeout(PATIENCE_S):
            for one in (self.asked, self.second, self.third):
                while one.app.core.attached(tenant) != count:
                    await asyncio.sleep(0.01)


async def three(stack: AsyncExitStack, directory: Path, **more: object) -> Three:
    postgres.require()
    options = {"store.url": postgres.place(directory), **ONE_STEP, **more}
    return Three([await stack.enter_async_context(house(directory, **options)) for _ in range(3)])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Three]:
    """The servers of the whole module."""
    async with AsyncExitStack() as stack:
        yield await three(stack, tmp_path_factory.mktemp("shared"))


@pytest_asyncio.fixture(loop_scope="module")
async def at(shared: Three) -> AsyncIterator[Three]:
    """The same, with nobody attached when the test is over."""
    yield shared
    await shared.known(0)


async def test_a_harness_does_the_jobs_of_sessions_on_another_server(at: Three) -> None:
    session = await talk(at.asked)
    async with attached(at.second) as harness:
        await at.known(1)
        async with compacting(at.asked, session):
            job = await harness.job()
            assert job.session_id == session.session_id
            await harness.does(job)
        status = await at.third.client.get_status(session)
        assert status.summarizers.attached_harness_count == 1
    assert await written_by(at.third, session) == ["runtime"]


async def test_who_has_left_is_not_asked_for_any_more(at: Three) -> None:
    session = await talk(at.asked)
    async with attached(at.second):
        await at.known(1)
    await at.known(0)
    async with compacting(at.asked, session):
        pass
    assert await written_by(at.asked, session) == ["extractive"]


async def test_work_goes_to_who_takes_it(at: Three) -> None:
    """Of the agent, of the model and of the size that a harness named, on whichever server."""
    session = await talk(at.asked)
    async with (
        attached(at.second, agent_id="another") as of_another,
        attached(at.second, max_input_tokens=10) as small,
        attached(at.third) as right,
    ):
        await at.known(3)
        async with compacting(at.asked, session):
            await right.does(await right.job())
        await of_another.was_told_nothing()
        await small.was_told_nothing()
    assert await written_by(at.asked, session) == ["runtime"]


async def test_a_job_is_handed_to_one_of_many(at: Three) -> None:
    sessions = [await talk(at.asked) for _ in range(4)]
    async with AsyncExitStack() as stack:
        theirs = [
            await stack.enter_async_context(attached(one))
            for one in (at.asked, at.second, at.third)
            for _ in range(2)
        ]
        await at.known(len(theirs))
        done = set()
        for session in sessions:
            async with compacting(at.asked, session):
                job, harness = await first_of(*theirs)
                assert job.job_id not in done
                done.add(job.job_id)
                await harness.does(job)
        for harness in theirs:
            await harness.was_told_nothing()
    for session in sessions:
        assert await written_by(at.asked, session) == ["runtime"]


async def test_a_result_counts_wherever_the_harness_comes_back(at: Three) -> None:
    session = await talk(at.asked)
    async with attached(at.second) as first:
        await at.known(1)
        async with compacting(at.asked, session):
            job = await first.job()
            await first.leave()
            await at.known(0)
            async with attached(at.third) as again:
                await again.say(keep_lease={"job_id": job.job_id, "lease_id": job.lease_id})
                await again.does(job)
                await again.answer(job, "Another text for the same job.")
                receipt = await again.receipt()
                assert (receipt.accepted, bool(receipt.reason)) == (False, True)
    assert await written_by(at.asked, session) == ["runtime"]
    (summary,) = (await at.asked.export(session)).summaries
    assert summary.text == GOOD


async def test_a_failure_that_may_pass_is_tried_again_by_whoever_is_there(
    at: Three, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wanted, "POLL_S", 0.1)  # a job that rests wakes nobody
    session = await talk(at.asked)
    async with attached(at.second) as one, attached(at.third) as other:
        await at.known(2)
        async with compacting(at.asked, session):
            job, first = await first_of(one, other)
            await first.answer(job, "", error="rate_limited", retryable=True)
            assert (await first.receipt()).accepted
            again, second = await first_of(one, other)
            assert again.job_id == job.job_id
            assert again.lease_id != job.lease_id
            await second.does(again)
    assert await written_by(at.asked, session) == ["runtime"]


async def test_who_works_on_what_nobody_wants_is_told(at: Three) -> None:
    session = await talk(at.asked)
    async with attached(at.second) as harness:
        await at.known(1)
        call = at.asked.stub.Compact(
            t.CompactRequest(
                session=session, budget=t.Budget(message_tokens=4_000), force=True, request_id="r"
            )
        )
        job = await harness.job()
        call.cancel()
        cancelled = await harness.cancelled()
        assert cancelled.job_id == job.job_id
        assert cancelled.reason
        await harness.answer(job)
        assert not (await harness.receipt()).accepted
    assert await written_by(at.asked, session) == []


async def test_what_has_no_end_is_given_up_in_time(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        at = await three(stack, tmp_path, **{"summarizer.runtime.timeout": "1s"})
        wanted.POLL_S = 0.1  # put back by the fixture
        session = await talk(at.asked)
        async with attached(at.second) as harness:
            await at.known(1)
            async with compacting(at.asked, session):
                job = await harness.job()
            assert (await harness.cancelled()).job_id == job.job_id
        assert await written_by(at.asked, session) == ["extractive"]


async def test_a_harness_gets_work_of_its_own_tenant_only(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        at = await three(stack, tmp_path, **{"auth.tokens": TOKENS})
        alice, bob = at.asked.client_of(ALICE), at.asked.client_of(BOB)
        async with attached(at.second, token=BOB) as of_bob:
            await at.known(1, "bob")
            await at.known(0, "alice")
            session = await talk(at.asked, alice)
            async with compacting(at.asked, session, alice):
                pass
            assert await written_by(at.asked, session, alice) == ["extractive"]
            async with attached(at.third, token=ALICE) as of_alice:
                await at.known(1, "alice")
                session = await talk(at.asked, alice)
                async with compacting(at.asked, session, alice):
                    job = await of_alice.job()
                    # Whoever learns the names of another tenant's job has nothing of it.
                    await of_bob.answer(job, "Of a stranger.")
                    assert not (await of_bob.receipt()).accepted
                    await of_alice.does(job)
            assert await written_by(at.asked, session, alice) == ["runtime"]
            session = await talk(at.asked, bob)
            async with compacting(at.asked, session, bob):
                await of_bob.does(await of_bob.job())


async def test_what_is_lent_is_of_any_size(at: Three) -> None:
    """What servers tell each other has names only: the work and its result are in rows."""
    session = await talk(at.asked, text="The build went on, and on, and on. " * 30)
    sizes = []
    async with attached(at.second) as harness:
        await at.known(1)

        async def work() -> None:
            while True:
                job = await harness.job()
                sizes.append(len(job.messages[0].parts[0].text.text))
                await harness.does(job, f"{GOOD} {'It went on and on. ' * 20}")

        async with compacting(at.asked, session):
            working = asyncio.create_task(work())
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    assert max(sizes) > 50_000
    assert set(await written_by(at.asked, session)) == {"runtime"}


async def test_who_had_no_room_takes_the_job_when_it_has(at: Three) -> None:
    sessions = [await talk(at.asked), await talk(at.third)]
    async with attached(at.second) as harness:
        await at.known(1)
        async with compacting(at.asked, sessions[0]), compacting(at.third, sessions[1]):
            for _ in sessions:
                await harness.does(await harness.job())
    for session in sessions:
        assert await written_by(at.second, session) == ["runtime"]


async def test_a_host_comes_by_at_any_server(at: Three) -> None:
    """It takes the job at one, and brings the result to another, while a third waits for it."""
    session = await lending(at.asked)
    async with compacting(at.asked, session) as compaction:
        await begun(at.asked, session)
        (job,) = (await come_by(at.second, session)).jobs
        (receipt,) = (await come_by(at.third, session, completions=[done(job)])).receipts
        assert receipt.accepted
        assert (await compaction).summaries
    assert await written_by(at.second, session) == ["runtime"]


async def test_no_watcher_sees_what_servers_tell_each_other(at: Three) -> None:
    session = await talk(at.asked)
    seen: list[str] = []

    async def watch() -> None:
        async for event in at.second.client.sessions.watch():
            seen.append(event.name)

    watching = asyncio.create_task(watch())
    try:
        await asyncio.sleep(0.3)
        async with attached(at.second) as harness:
            await at.known(1)
            async with compacting(at.asked, session):
                await harness.does(await harness.job())
        async with asyncio.timeout(PATIENCE_S):
            while "context:dag_compacted" not in seen:
                await asyncio.sleep(0.01)
        assert not [name for name in seen if name.startswith("server:")]
    finally:
        watching.cancel()
