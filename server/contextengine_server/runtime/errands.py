"""A harness comes by: it brings the results of jobs and takes others, as data."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from contextengine_server.store.model_jobs import ModelJob
from contextengine_server.store.protocols import ModelLeases
from contextengine_server.summarize.models.runtime import Completion

from .broker import Harnesses
from .streams import Attached, Harness, Receipt
from .visits import SessionName

LEASES = 2
"""So many leases long is a job the visitor's own: it cannot say meanwhile that it works on it."""

LOOK_S = 0.25
"""How often a visitor who waits looks whether work may still come, besides being woken."""


class JobResult(msgspec.Struct, frozen=True):
    """The result of a job that was handed out."""

    job_id: str
    lease_id: str
    done: Completion


class Lent(msgspec.Struct, frozen=True):
    """What a visitor brings, and what it would do."""

    harness: Harness | None = None
    """None: it takes no jobs."""
    results: Sequence[JobResult] = ()
    wait_s: float = 0.0
    """How long it waits for a job that may still come."""

    @property
    def agent(self) -> str:
        """The agent whose jobs it would do; empty: whoever's the session is."""
        return "" if self.harness is None else self.harness.agent

    @property
    def takes(self) -> bool:
        """True where it takes jobs."""
        return self.harness is not None


class Visit(msgspec.Struct, frozen=True):
    """What a visitor took, and what became of what it brought."""

    jobs: Sequence[ModelJob] = ()
    receipts: Sequence[Receipt] = ()


class Errands(msgspec.Struct, frozen=True):
    """Serves harnesses that come by."""

    harnesses: Harnesses
    jobs: ModelLeases
    clock_ms: Callable[[], int]

    async def serve(
        self, session: SessionName, lent: Lent, owed: Callable[[], Awaitable[bool]]
    ) -> Visit:
        """Takes the results, and hands out jobs of the session's agent. Waits for a first one as
        long as the visitor does, and no longer than `owed` says that one may come."""
        tenant, agent, _ = session
        self.harnesses.visits.seen(session)
        if lent.harness is None:
            return Visit((), await self._accept(Attached("", tenant, Harness()), lent.results))
        # Before the results are taken: what follows of them sees who is there to do it.
        visitor = self.harnesses.attach(tenant, replace(lent.harness, agent=agent), passing=True)
        try:
            receipts = await self._accept(visitor, lent.results)
            return Visit(await self._take(visitor, lent.wait_s, owed), receipts)
        finally:
            self.harnesses.detach(visitor)

    async def _accept(self, visitor: Attached, results: Sequence[JobResult]) -> list[Receipt]:
        """What becomes of results, in their order."""
        for one in results:
            await self.harnesses.completed(visitor, one.job_id, one.lease_id, one.done)
        said = [one for one in visitor.unsaid if isinstance(one, Receipt)]
        visitor.unsaid.clear()
        return said

    async def _take(
        self, visitor: Attached, wait_s: float, owed: Callable[[], Awaitable[bool]]
    ) -> list[ModelJob]:
        """The jobs that are there, once there is one."""
        taken: list[ModelJob] = []
        ends = asyncio.get_running_loop().time() + wait_s
        while True:
            visitor.woken.clear()
            while (job := await self.harnesses.take(visitor)) is not None:
                taken.append(await self._held(job))
            left = ends - asyncio.get_running_loop().time()
            if taken or left <= 0 or not await owed():
                return taken
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, LOOK_S)):
                    await visitor.woken.wait()

    async def _held(self, job: ModelJob) -> ModelJob:
        """The job under a longer lease."""
        until = self.clock_ms() + LEASES * self.harnesses.terms.lease_ms
        if await self.jobs.extend(job.tenant, job.id, job.lease_id, until):
            return replace(job, lease_until_ms=until)
        return job
