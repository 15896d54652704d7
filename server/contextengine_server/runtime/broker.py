"""Harnesses that lend their models: who is attached, what each works on, and what becomes of it.

The store is the record: a job is there before it is handed out, its lease outlives the stream and
the process, and its result is kept until the summarizer that wanted it takes it. What is in memory
here are the streams that stand now. Where servers share a store, a job that one of them offers is
done by a harness of any: they tell each other when to look (`elsewhere`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Protocol

import msgspec
import structlog
from msgspec.structs import replace

from contextengine_server.store.model_jobs import JobOutcome, ModelJob
from contextengine_server.store.protocols import ModelLeases
from contextengine_server.summarize.models.runtime import Completion

from .elsewhere import Elsewhere, Lending
from .job_bytes import encode
from .streams import Attached, Cancelled, Harness, Receipt, Said
from .visits import Visits

RETRY_MS = 1_000
"""How long a job rests after a failure that may pass, before it is handed out again."""

log = structlog.get_logger("contextengine.attach")


class Terms(msgspec.Struct, frozen=True):
    """How long work is waited for."""

    timeout_ms: int
    """A job that has no result by then is given up."""
    lease_ms: int
    """How long a harness has a job before it must say that it still works on it."""
    attempts: int
    """How often a job is handed out."""


class Heard(Protocol):
    """Hears that something became of a job, or of any of a tenant's; answers whether anybody waits
    for it here."""

    def __call__(self, tenant: str, job_id: str = "") -> bool: ...


_REASONS = {
    JobOutcome.UNKNOWN: "there is no such job: it was cancelled or given up",
    JobOutcome.TWICE: "the job has its result: one was accepted before",
    JobOutcome.LOST: "the lease is lost: the job was handed out again",
}


class Harnesses:
    """The harnesses of all tenants. Belongs to one event loop."""

    def __init__(
        self,
        jobs: ModelLeases,
        clock_ms: Callable[[], int],
        new_id: Callable[[], str],
        terms: Terms,
        visits: Visits,
    ) -> None:
        self.elsewhere = Elsewhere()
        self._jobs = jobs
        self._clock_ms = clock_ms
        self._new_id = new_id
        self.terms, self.visits = terms, visits
        self.changed = asyncio.Event()
        """Set where `lending` may answer something else than before."""
        self._streams: dict[str, dict[str, Attached]] = {}
        self._heard: Heard = lambda tenant, job_id="": False

    def hears(self, heard: Heard) -> None:
        """From now on `heard` is told what becomes of jobs."""
        self._heard = heard

    # The streams' side.

    def attach(self, tenant: str, harness: Harness, *, passing: bool = False) -> Attached:
        """A harness is there: it is given work as long as it is not detached. `passing`: it only
        comes by."""
        stream = Attached(self._new_id()[:12], tenant, harness, passing)
        self._streams.setdefault(tenant, {})[stream.id] = stream
        self._lends_otherwise(stream)
        log.info("attached", stream=stream.id, host=harness.host_id, agent=harness.agent)
        return stream

    def detach(self, stream: Attached) -> None:
        """The stream is gone. Its leases stand until they run out: the harness may come back with
        what it has."""
        stream.end()
        mine = self._streams.get(stream.tenant, {})
        if mine.pop(stream.id, None) is not None:
            log.info("detached", stream=stream.id, jobs=len(stream.leased))
        if not mine:
            self._streams.pop(stream.tenant, None)
        self._lends_otherwise(stream)
        self._heard(stream.tenant)

    def _lends_otherwise(self, stream: Attached) -> None:
        if not stream.passing:
            self.changed.set()

    async def next(self, stream: Attached) -> Said | None:
        """What to send next: what is to be said, else a job as soon as there is one and room for
        it. None: the stream ended."""
        while True:
            stream.woken.clear()
            if stream.unsaid:
                stream.heard.set()
                return stream.unsaid.popleft()
            if stream.ended:
                return None
            job = await self.take(stream)
            if job is not None:
                return job
            await stream.woken.wait()

    async def take(self, stream: Attached) -> ModelJob | None:
        """Hands out a job; None where there is none now, or no room for it."""
        job = await self._claim(stream) if self._has_room(stream) else None
        if job is not None:
            stream.leased[job.id] = job
        return job

    async def completed(
        self, stream: Attached, job_id: str, lease_id: str, done: Completion
    ) -> None:
        """A harness answered: keeps the result, and has a receipt sent."""
        job = await self._jobs.find(stream.tenant, job_id)
        if done.error and done.retryable and job is not None and job.attempts < self.terms.attempts:
            later = self._clock_ms() + RETRY_MS
            outcome = await self._jobs.put_back(stream.tenant, job_id, lease_id, later)
        else:
            outcome = await self._jobs.answer(
                stream.tenant, job_id, lease_id, encode(done), self._clock_ms()
            )
        self._let_go(stream.tenant, job_id, lease_id)
        stream.say(Receipt(job_id, _REASONS.get(outcome, "")))
        if not self._heard(stream.tenant, job_id) and outcome is JobOutcome.ACCEPTED:
            self.elsewhere.answered(stream.tenant, job_id)

    async def kept(self, stream: Attached, job_id: str, lease_id: str) -> None:
        """A harness still works on a job: extends its lease, or has it told that the job is no
        longer its own."""
        until = self._clock_ms() + self.terms.lease_ms
        if await self._jobs.extend(stream.tenant, job_id, lease_id, until):
            job = await self._jobs.find(stream.tenant, job_id)
            if job is not None:
                stream.leased[job_id] = job
            return
        stream.leased.pop(job_id, None)
        stream.say(
            Cancelled(
                job_id, "the lease is lost: the job was answered, handed out again or given up"
            )
        )

    def _has_room(self, stream: Attached) -> bool:
        now = self._clock_ms()
        # A job is given up soon after its end, by whoever waits for it.
        ended = now - self.terms.lease_ms
        stream.leased = {id: job for id, job in stream.leased.items() if job.expire_ms > ended}
        at_work = sum(job.lease_until_ms > now for job in stream.leased.values())
        return at_work < stream.harness.slots

    async def _claim(self, stream: Attached) -> ModelJob | None:
        harness = stream.harness
        return await self._jobs.claim(
            stream.tenant,
            self._new_id(),
            self._clock_ms(),
            self.terms.lease_ms,
            agent=harness.agent,
            most_tokens=harness.most_tokens,
            models=harness.models,
            most_attempts=self.terms.attempts,
        )

    def _let_go(self, tenant: str, job_id: str, lease_id: str) -> None:
        """Whichever stream was handed the job under this lease has room again."""
        for stream in self._streams.get(tenant, {}).values():
            job = stream.leased.get(job_id)
            if job is not None and job.lease_id == lease_id:
                del stream.leased[job_id]
                stream.woken.set()

    # Who there is.

    def attached(self, tenant: str, agent: str, model: str = "", tokens: int = 0) -> list[Attached]:
        """The streams that take such work."""
        streams = self._streams.get(tenant, {}).values()
        return [stream for stream in streams if stream.harness.suits(agent, model, tokens)]

    def count(self, tenant: str) -> int:
        """How many harnesses of the tenant are attached, to whichever server."""
        return len(self._streams.get(tenant, {})) + self.elsewhere.count(tenant)

    def lending(self) -> list[Lending]:
        """What the harnesses that are attached here take, each kind once, in an order that depends
        on nothing else. Those that come by are not among them."""
        kinds = Counter(
            Lending(
                stream.tenant,
                stream.harness.agent,
                stream.harness.models,
                stream.harness.most_tokens,
            )
            for streams in self._streams.values()
            for stream in streams.values()
            if not stream.passing
        )
        return sorted(replace(kind, count=count) for kind, count in kinds.items())

    # What becomes of jobs.

    def offered(self, tenant: str, agent: str) -> None:
        """A job of the agent is there: streams look for it."""
        for stream in self.attached(tenant, agent):
            stream.woken.set()

    def withdrawn(self, tenant: str, job_id: str, reason: str) -> None:
        """A job is not wanted any more: who was handed it is told."""
        for stream in self._streams.get(tenant, {}).values():
            if stream.leased.pop(job_id, None) is not None:
                stream.say(Cancelled(job_id, reason))

    def missed(self) -> None:
        """Nobody knows what was told: every stream looks for a job."""
        for streams in self._streams.values():
            for stream in streams.values():
                stream.woken.set()
