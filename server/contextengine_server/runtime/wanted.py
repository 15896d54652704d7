"""Completions that summarizers want of harnesses: each is a job in the store, and is waited for
until a harness of any server has answered, nobody is there who would, or time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b

from contextengine_server.store.model_jobs import ModelJob
from contextengine_server.store.protocols import ModelLeases
from contextengine_server.summarize import NobodyThere, SummarizerFailed
from contextengine_server.summarize.models.runtime import Completion, Work

from .broker import Harnesses
from .job_bytes import bytes_of, decode
from .streams import Harness

POLL_S = 1.0
"""How often a waiting summarizer looks at its job, besides being woken."""

TELL_S = 5.0
"""How often other servers are told of a job that nobody takes, besides at once: whoever of them
heard nothing, or had no room then, looks now."""


@dataclass(slots=True)
class _Waiter:
    """A summarizer that waits for a job here."""

    until_ms: int
    """When it gives up."""
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    told: int = -1
    """The attempts that the job had when other servers were told of it last."""
    told_s: float = 0.0
    """When that was, by the clock of the event loop."""


class WantedJobs:
    """What summarizers wait for here. Belongs to one event loop."""

    def __init__(
        self,
        harnesses: Harnesses,
        jobs: ModelLeases,
        clock_ms: Callable[[], int],
        new_id: Callable[[], str],
        draining: Callable[[], bool] = lambda: False,
    ) -> None:
        self._harnesses, self._elsewhere = harnesses, harnesses.elsewhere
        self._terms, self._visits = harnesses.terms, harnesses.visits
        self._jobs = jobs
        self._clock_ms = clock_ms
        self._new_id = new_id
        self._draining = draining
        """True while the server ends: work that is given up then is wanted again after the
        restart."""
        self._waiting: dict[tuple[str, str], _Waiter] = {}
        harnesses.hears(self.look)

    async def there(self, tenant: str, agent: str, session: str, model: str) -> bool:
        """True where a harness is attached that suits, one has a job of this session and may come
        back with it, or the session's host comes by for jobs."""
        return (
            bool(self._suited(tenant, agent, model))
            or await self._jobs.coming(tenant, agent, session, self._clock_ms())
            or await self._visits.expected((tenant, agent, session))
        )

    def room(self, tenant: str, agent: str, model: str = "") -> int | None:
        """The most input tokens that a harness takes, 0: one does not say; None: nobody is
        attached."""
        most = [harness.most_tokens for harness in self._suited(tenant, agent, model)]
        if not most:
            return None
        return 0 if 0 in most else max(most)

    async def complete(self, work: Work) -> Completion:
        """What a harness answered. Raises SummarizerFailed where none did, NobodyThere where none
        is there any more."""
        until = self._clock_ms() + self._terms.timeout_ms
        job = await self._offer(work, until)
        key = (work.tenant, job.id)
        waiter = self._waiting.setdefault(key, _Waiter(until))
        wanted = True
        why = "nobody waits for it any more"
        try:
            while True:
                waiter.woken.clear()
                found = await self._jobs.find(*key)
                if found is None:
                    wanted = False
                    raise SummarizerFailed("the job is gone: its session was deleted", asked=False)
                if found.answered:
                    wanted = False
                    if not found.result:
                        raise SummarizerFailed("another server took the result", asked=False)
                    await self._jobs.settle(*key, until)
                    return decode(found.result)
                try:
                    await self._hand_out(found, work, waiter)
                except SummarizerFailed as error:
                    why = str(error)
                    raise
                # Not wait_for: it loses a cancellation that comes together with the event.
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_S):
                        await waiter.woken.wait()
        finally:
            self._waiting.pop(key, None)
            # While the server ends the job stays: the same work is asked for again after the
            # restart.
            if wanted and not self._draining():
                await self._withdraw(work.tenant, job.id, until, why)

    async def _offer(self, work: Work, until_ms: int) -> ModelJob:
        now = self._clock_ms()
        encoded = bytes_of(work)
        job = ModelJob(
            work.tenant,
            self._new_id(),
            blake2b(encoded, digest_size=16).hexdigest(),
            work.agent,
            work.session,
            queued_ms=now,
            expire_ms=until_ms,
            input_tokens=work.input_tokens,
            model=work.model,
            work=encoded,
        )
        try:
            return await self._jobs.offer(job, now)
        except asyncio.CancelledError:
            # The store may have written the offer although the caller has gone: without this a
            # harness would work on a job that nobody waits for.
            await self._jobs.remove(job.tenant, job.id, until_ms)
            raise

    async def _hand_out(self, job: ModelJob, work: Work, waiter: _Waiter) -> None:
        """Has streams look for a job that nobody works on. Raises SummarizerFailed where there is
        no hope for it."""
        now = self._clock_ms()
        if now >= waiter.until_ms:
            seconds = self._terms.timeout_ms / 1000
            raise SummarizerFailed(
                f"no harness answered within {seconds:g} s",
                asked=job.attempts > 0,
                kind="timeout",
            )
        if job.lease_until_ms > now:
            return
        if job.attempts >= self._terms.attempts:
            raise SummarizerFailed(
                f"no harness answered, of {job.attempts} that were given the job"
            )
        wanted = (work.tenant, work.agent, work.model, work.input_tokens)
        suited, elsewhere = self._harnesses.attached(*wanted), self._elsewhere.suited(*wanted)
        if not suited and not elsewhere:
            if job.attempts:
                raise SummarizerFailed(
                    "the harness that was given the job has left", kind="connection"
                )
            session = (work.tenant, work.agent, work.session)
            if await self._visits.expected(session) and self._visits.awaits(
                session, job.queued_ms, now
            ):
                return
            raise NobodyThere("no harness is attached that takes the job")
        for stream in suited:
            stream.woken.set()
        loop_s = asyncio.get_running_loop().time()
        if elsewhere and (waiter.told != job.attempts or loop_s >= waiter.told_s + TELL_S):
            waiter.told, waiter.told_s = job.attempts, loop_s
            self._elsewhere.offered(job)

    async def _withdraw(self, tenant: str, job_id: str, until_ms: int, reason: str) -> None:
        """Nobody here wants a job any more; nobody at all, unless it was asked for again since."""
        if await self._jobs.remove(tenant, job_id, until_ms):
            self._harnesses.withdrawn(tenant, job_id, reason)
            self._elsewhere.withdrawn(tenant, job_id, reason)

    def look(self, tenant: str = "", job_id: str = "") -> bool:
        """Something became of a job, or of any of a tenant's, or of anybody's: who waits for it
        looks. False where nobody here does."""
        waiters = [
            waiter
            for key, waiter in self._waiting.items()
            if tenant in ("", key[0]) and job_id in ("", key[1])
        ]
        for waiter in waiters:
            waiter.woken.set()
        return bool(waiters)

    def _suited(self, tenant: str, agent: str, model: str) -> list[Harness]:
        """The harnesses that take such work, on any server."""
        here = [stream.harness for stream in self._harnesses.attached(tenant, agent, model)]
        return here + self._elsewhere.suited(tenant, agent, model)
