"""Harnesses that lend their models: who is attached, what each works on, and what becomes of it.

The store is the record: a job is there before it is handed out, its lease outlives the stream and
the process, and its result is kept until the summarizer that wanted it takes it. What is in memory
here are the streams that stand now, and who waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TypeAlias

import msgspec
import structlog

from contextengine_server.store.model_jobs import JobOutcome, ModelJob
from contextengine_server.store.protocols import ModelLeases
from contextengine_server.summarize import NobodyThere, SummarizerFailed
from contextengine_server.summarize.models.runtime import Completion, Work

from .job_bytes import bytes_of, decode, encode
from .visits import Visits

POLL_S = 1.0
"""How often a waiting summarizer looks at its job, besides being woken."""

RETRY_MS = 1_000
"""How long a job rests after a failure that may pass, before it is handed out again."""

MAX_UNSAID = 64
"""Receipts that wait to be read by a harness."""

log = structlog.get_logger("contextengine.attach")


class Terms(msgspec.Struct, frozen=True):
    """How long work is waited for."""

    timeout_ms: int
    """A job that has no result by then is given up."""
    lease_ms: int
    """How long a harness has a job before it must say that it still works on it."""
    attempts: int
    """How often a job is handed out."""


class Harness(msgspec.Struct, frozen=True):
    """A harness as it introduced itself."""

    host_id: str = ""
    agent: str = ""
    """Only work of this agent; empty: of any."""
    models: tuple[str, ...] = ()
    """The models it lends; empty: its default, whatever is wished for."""
    slots: int = 1
    """How many jobs it takes at once."""
    most_tokens: int = 0
    """The largest input it takes; 0: it does not say."""

    def suits(self, agent: str, model: str, tokens: int = 0) -> bool:
        """True where it takes such work."""
        return (
            self.agent in ("", agent)
            and (not model or not self.models or model in self.models)
            and (not self.most_tokens or tokens <= self.most_tokens)
        )


class Receipt(msgspec.Struct, frozen=True):
    """What became of a result: an empty reason where it was accepted."""

    job_id: str
    reason: str = ""


class Cancelled(msgspec.Struct, frozen=True):
    """A job that is no longer wanted of this harness."""

    job_id: str
    reason: str


Said: TypeAlias = ModelJob | Receipt | Cancelled


@dataclass(slots=True, eq=False)
class Attached:
    """A stream that stands."""

    id: str
    tenant: str
    harness: Harness
    leased: dict[str, ModelJob] = field(default_factory=dict)
    """The jobs that it was handed and has not answered, by id; also where its lease ran out: it is
    told when nobody wants the answer any more."""
    unsaid: deque[Said] = field(default_factory=deque)
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    ended: bool = False

    def say(self, said: Receipt | Cancelled) -> None:
        """Has something sent."""
        self.unsaid.append(said)
        self.woken.set()

    def end(self) -> None:
        """The harness says no more: what is still to be said to it is the last."""
        self.ended = True
        self.woken.set()

    async def caught_up(self) -> None:
        """Waits until the harness has read most of what was said: one that never reads is not
        listened to."""
        while len(self.unsaid) >= MAX_UNSAID:
            self.heard.clear()
            await self.heard.wait()


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
        draining: Callable[[], bool] = lambda: False,
    ) -> None:
        self._jobs = jobs
        self._clock_ms = clock_ms
        self._new_id = new_id
        self.terms, self.visits = terms, visits
        self._draining = draining
        """True while the server ends: work that is given up then is wanted again after the
        restart."""
        self._streams: dict[str, dict[str, Attached]] = {}
        self._waiting: dict[tuple[str, str], asyncio.Event] = {}

    # The streams' side.

    def attach(self, tenant: str, harness: Harness) -> Attached:
        """A harness is there: it is given work as long as it is not detached."""
        stream = Attached(self._new_id()[:12], tenant, harness)
        self._streams.setdefault(tenant, {})[stream.id] = stream
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
        self._look_again(stream.tenant)

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
        self._look_again(stream.tenant, job_id)

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

    # The summarizers' side.

    def attached(self, tenant: str, agent: str, model: str = "", tokens: int = 0) -> list[Attached]:
        """The streams that take such work."""
        streams = self._streams.get(tenant, {}).values()
        return [stream for stream in streams if stream.harness.suits(agent, model, tokens)]

    def count(self, tenant: str) -> int:
        """How many harnesses of the tenant are attached."""
        return len(self._streams.get(tenant, {}))

    async def there(self, tenant: str, agent: str, session: str, model: str) -> bool:
        """True where a harness is attached that suits, one has a job of this session and may come
        back with it, or the session's host comes by for jobs."""
        return (
            bool(self.attached(tenant, agent, model))
            or await self._jobs.coming(tenant, agent, session, self._clock_ms())
            or await self.visits.expected((tenant, agent, session))
        )

    def room(self, tenant: str, agent: str, model: str = "") -> int | None:
        """The most input tokens that a harness takes, 0: one does not say; None: nobody is
        attached."""
        most = [stream.harness.most_tokens for stream in self.attached(tenant, agent, model)]
        if not most:
            return None
        return 0 if 0 in most else max(most)

    async def complete(self, work: Work) -> Completion:
        """What a harness answered. Raises SummarizerFailed where none did, NobodyThere where none
        is there any more."""
        job = await self._offer(work)
        key = (work.tenant, job.id)
        woken = self._waiting.setdefault(key, asyncio.Event())
        wanted = True
        why = "nobody waits for it any more"
        try:
            while True:
                woken.clear()
                found = await self._jobs.find(*key)
                if found is None:
                    wanted = False
                    raise SummarizerFailed("the job is gone: its session was deleted", asked=False)
                if found.answered:
                    wanted = False
                    await self._jobs.settle(*key)
                    return decode(found.result)
                try:
                    await self._hand_out(found, work)
                except SummarizerFailed as error:
                    why = str(error)
                    raise
                # Not wait_for: it loses a cancellation that comes together with the event.
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_S):
                        await woken.wait()
        finally:
            self._waiting.pop(key, None)
            # While the server ends the job stays: the same work is asked for again after the
            # restart.
            if wanted and not self._draining():
                await self._withdraw(work.tenant, job.id, why)

    async def _offer(self, work: Work) -> ModelJob:
        now = self._clock_ms()
        encoded = bytes_of(work)
        job = ModelJob(
            work.tenant,
            self._new_id(),
            blake2b(encoded, digest_size=16).hexdigest(),
            work.agent,
            work.session,
            queued_ms=now,
            expire_ms=now + self.terms.timeout_ms,
            input_tokens=work.input_tokens,
            model=work.model,
            work=encoded,
        )
        try:
            return await self._jobs.offer(job, now)
        except asyncio.CancelledError:
            # The store may have written the offer although the caller has gone: without this a
            # harness would work on a job that nobody waits for.
            await self._jobs.remove(job.tenant, job.id)
            raise

    async def _hand_out(self, job: ModelJob, work: Work) -> None:
        """Has streams look for a job that nobody works on. Raises SummarizerFailed where there is
        no hope for it."""
        now = self._clock_ms()
        if now >= job.expire_ms:
            seconds = self.terms.timeout_ms / 1000
            raise SummarizerFailed(
                f"no harness answered within {seconds:g} s",
                asked=job.attempts > 0,
                kind="timeout",
            )
        if job.lease_until_ms > now:
            return
        if job.attempts >= self.terms.attempts:
            raise SummarizerFailed(
                f"no harness answered, of {job.attempts} that were given the job"
            )
        suited = self.attached(work.tenant, work.agent, work.model, work.input_tokens)
        if not suited:
            if job.attempts:
                raise SummarizerFailed(
                    "the harness that was given the job has left", kind="connection"
                )
            session = (work.tenant, work.agent, work.session)
            if await self.visits.expected(session) and self.visits.awaits(
                session, job.queued_ms, now
            ):
                return
            raise NobodyThere("no harness is attached that takes the job")
        for stream in suited:
            stream.woken.set()

    async def _withdraw(self, tenant: str, job_id: str, reason: str) -> None:
        await self._jobs.remove(tenant, job_id)
        for stream in self._streams.get(tenant, {}).values():
            if stream.leased.pop(job_id, None) is not None:
                stream.say(Cancelled(job_id, reason))

    def _look_again(self, tenant: str, job_id: str | None = None) -> None:
        """Wakes who waits for this job, or for any of the tenant's."""
        for key, woken in self._waiting.items():
            if key[0] == tenant and job_id in (None, key[1]):
                woken.set()
