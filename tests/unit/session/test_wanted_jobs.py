"""Two servers that want the same work of a harness, because one stood still for so long that the
other goes on with what it did: there is one job, and what one of them does with it takes nothing
from the other."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from contextengine_server.runtime import wanted
from contextengine_server.runtime.broker import Harnesses, Terms
from contextengine_server.runtime.elsewhere import Lending
from contextengine_server.runtime.streams import Attached, Harness
from contextengine_server.runtime.visits import SessionName, Visits
from contextengine_server.runtime.wanted import WantedJobs
from contextengine_server.store.memory import MemoryStore
from contextengine_server.store.model_jobs import ModelJob
from contextengine_server.summarize import NobodyThere, SummarizerFailed
from contextengine_server.summarize.models.runtime import Completion, Work
from tests.integration.harness import Clock

WORK = Work("acme", "main", "s1", "Summarize.", "What was said.", 10, 100)
DONE = Completion("What it comes to.")


async def nobody_comes_by(session: SessionName) -> bool:
    return False


class Server:
    """What one server has of it."""

    def __init__(self, store: MemoryStore, clock: Clock, name: str) -> None:
        numbers = count(1)
        self.harnesses = Harnesses(
            store.model_leases,
            clock,
            lambda: f"{name}{next(numbers)}",
            Terms(60_000, 10_000, 3),
            Visits(nobody_comes_by, 0),
        )
        self.wanted = WantedJobs(
            self.harnesses, store.model_leases, clock, lambda: f"{name}{next(numbers)}"
        )

    def asks(self) -> asyncio.Task[Completion]:
        return asyncio.create_task(self.wanted.complete(WORK))


class Pair:
    """The server that stood still, and the one that goes on, to which the harness is attached."""

    def __init__(self, store: MemoryStore) -> None:
        self.store, self.clock = store, Clock()
        self.slow, self.next = (Server(store, self.clock, name) for name in ("slow", "next"))
        self.slow.harnesses.elsewhere.learn([Lending("acme")])
        self.stream: Attached = self.next.harnesses.attach("acme", Harness())

    async def both_ask(self) -> tuple[asyncio.Task[Completion], asyncio.Task[Completion]]:
        first = self.slow.asks()
        await asyncio.sleep(0.05)
        self.clock.advance(30)
        second = self.next.asks()
        await asyncio.sleep(0.05)
        return first, second

    async def job(self) -> ModelJob:
        job = await self.next.harnesses.next(self.stream)
        assert isinstance(job, ModelJob)
        assert await self.store.model_leases.open_count("acme") == 1
        return job

    async def does(self, job: ModelJob) -> None:
        await self.next.harnesses.completed(self.stream, job.id, job.lease_id, DONE)


@pytest.fixture
async def pair(monkeypatch: pytest.MonkeyPatch) -> Pair:
    monkeypatch.setattr(wanted, "POLL_S", 0.02)
    store = MemoryStore()
    await store.open()
    return Pair(store)


async def test_who_gives_up_leaves_the_job_to_the_other(pair: Pair) -> None:
    first, second = await pair.both_ask()
    job = await pair.job()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await pair.does(job)
    assert await asyncio.wait_for(second, 5) == DONE


async def test_who_waited_long_enough_leaves_the_job_to_the_other(pair: Pair) -> None:
    first, second = await pair.both_ask()
    job = await pair.job()
    pair.clock.advance(31)  # of the first, a minute is over
    with pytest.raises(SummarizerFailed, match="within 60 s"):
        await asyncio.wait_for(first, 5)
    await pair.does(job)
    assert await asyncio.wait_for(second, 5) == DONE


async def test_who_takes_the_result_first_leaves_it_to_the_other(pair: Pair) -> None:
    first, second = await pair.both_ask()
    job = await pair.job()
    await pair.does(job)
    done = await asyncio.gather(first, second, return_exceptions=True)
    assert done[1] == DONE
    # The one that stood still has it too, unless the other has taken it by then.
    assert done[0] == DONE or isinstance(done[0], SummarizerFailed)
    settled = await pair.store.model_leases.find("acme", job.id)
    assert settled is not None
    assert (settled.work, settled.result) == (b"", b"")


async def test_a_result_that_was_taken_is_a_failure_and_no_defect(pair: Pair) -> None:
    first, second = await pair.both_ask()
    job = await pair.job()
    pair.slow.wanted._jobs = Late(pair.store)  # type: ignore[assignment]
    await pair.does(job)
    assert await asyncio.wait_for(second, 5) == DONE
    with pytest.raises(SummarizerFailed, match="another server took the result"):
        await asyncio.wait_for(first, 5)


class Late:
    """The store, for a server that looks only once the result was taken."""

    def __init__(self, store: MemoryStore) -> None:
        self._leases = store.model_leases

    async def find(self, tenant: str, id: str) -> ModelJob | None:
        while True:
            found = await self._leases.find(tenant, id)
            if found is None or found.digest == "":
                return found
            await asyncio.sleep(0.01)


async def test_nobody_is_waited_for_once_the_others_are_gone(pair: Pair) -> None:
    asking = pair.slow.asks()
    await asyncio.sleep(0.05)
    assert not asking.done()
    pair.slow.harnesses.elsewhere.learn([])
    with pytest.raises(NobodyThere):
        await asyncio.wait_for(asking, 5)
    assert await pair.store.model_leases.open_count("acme") == 0
