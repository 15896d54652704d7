"""Jobs for leased models, what guards summarizers, what tenants may hold, and what
waits, in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from contextengine_server.store.model_jobs import JobOutcome, ModelJob
from contextengine_server.store.rows import Workload

from .tables import Tables

T = TypeVar("T")


class MemoryModelLeases:
    """`ModelLeases` over a dictionary. `tables` answers the tables, or raises StoreUnavailable."""

    def __init__(self, tables: Callable[[], Tables]) -> None:
        self._tables = tables

    async def offer(self, job: ModelJob, now_ms: int) -> ModelJob:
        """Adds a job, or answers the one of its digest that is there and wanted still."""
        jobs = self._tables().jobs
        for known in [known for known in jobs.values() if known.tenant == job.tenant]:
            if known.expire_ms <= now_ms:
                del jobs[known.tenant, known.id]
        for known in jobs.values():
            if known.tenant == job.tenant and known.digest == job.digest != "":
                return self._put(replace(known, expire_ms=max(known.expire_ms, job.expire_ms)))
        return self._put(job)

    async def find(self, tenant: str, id: str) -> ModelJob | None:
        """A job; None where there is none."""
        return self._tables().jobs.get((tenant, id))

    async def coming(self, tenant: str, agent: str, session: str, now_ms: int) -> bool:
        """True where a job of the session has a result that was not taken, or a lease under which
        one may come."""
        return any(
            (job.tenant, job.agent, job.session) == (tenant, agent, session)
            and bool(job.digest)
            and job.expire_ms > now_ms
            and (job.answered or (bool(job.lease_id) and job.lease_until_ms > now_ms))
            for job in self._tables().jobs.values()
        )

    async def settle(self, tenant: str, id: str, until_ms: int) -> None:
        """The result was taken: of the job stays, until it expires, that it was answered."""
        job = self._tables().jobs.get((tenant, id))
        if job is not None and job.expire_ms <= until_ms:
            self._put(replace(job, answered=True, digest="", work=b"", result=b""))

    async def remove(self, tenant: str, id: str, until_ms: int) -> bool:
        """Who wanted the job does so no longer. True where it is gone."""
        job = self._tables().jobs.get((tenant, id))
        if job is not None and job.expire_ms <= until_ms:
            job = None
            del self._tables().jobs[tenant, id]
        return job is None

    async def open_count(self, tenant: str) -> int:
        """How many jobs of the tenant have no result."""
        jobs = self._tables().jobs.values()
        return sum(job.tenant == tenant and not job.answered for job in jobs)

    async def claim(
        self,
        tenant: str,
        lease_id: str,
        now_ms: int,
        lease_ms: int,
        *,
        agent: str = "",
        most_tokens: int = 0,
        models: Sequence[str] = (),
        most_attempts: int,
    ) -> ModelJob | None:
        """Hands out the oldest job that is due and suits."""
        due = [
            job
            for job in self._tables().jobs.values()
            if job.tenant == tenant
            and not job.answered
            and job.lease_until_ms <= now_ms < job.expire_ms
            and job.attempts < most_attempts
            and agent in ("", job.agent)
            and (not most_tokens or job.input_tokens <= most_tokens)
            and (not models or job.model in ("", *models))
        ]
        if not due:
            return None
        job = min(due, key=lambda one: one.queued_ms)
        until = min(now_ms + lease_ms, job.expire_ms)
        attempts = job.attempts + 1
        return self._put(replace(job, lease_id=lease_id, lease_until_ms=until, attempts=attempts))

    async def extend(self, tenant: str, id: str, lease_id: str, until_ms: int) -> bool:
        """Extends a lease; False where it is lost, or the job is answered or gone."""
        job = self._leased(tenant, id, lease_id)
        if job is None:
            return False
        until = max(job.lease_until_ms, min(until_ms, job.expire_ms))
        self._put(replace(job, lease_until_ms=until))
        return True

    async def answer(
        self, tenant: str, id: str, lease_id: str, result: bytes, now_ms: int
    ) -> JobOutcome:
        """Keeps a result, once."""
        job = self._leased(tenant, id, lease_id)
        if job is None or job.expire_ms <= now_ms:
            return self._why(tenant, id, lease_id)
        self._put(replace(job, answered=True, result=result))
        return JobOutcome.ACCEPTED

    async def put_back(self, tenant: str, id: str, lease_id: str, not_before_ms: int) -> JobOutcome:
        """Ends a lease without a result."""
        job = self._leased(tenant, id, lease_id)
        if job is None:
            return self._why(tenant, id, lease_id)
        self._put(replace(job, lease_id="", lease_until_ms=not_before_ms))
        return JobOutcome.ACCEPTED

    def _put(self, job: ModelJob) -> ModelJob:
        self._tables().jobs[job.tenant, job.id] = job
        return job

    def _leased(self, tenant: str, id: str, lease_id: str) -> ModelJob | None:
        """The job that waits for its result under a lease."""
        job = self._tables().jobs.get((tenant, id))
        return job if job and not job.answered and job.lease_id == lease_id != "" else None

    def _why(self, tenant: str, id: str, lease_id: str) -> JobOutcome:
        """Why a result was not taken."""
        job = self._tables().jobs.get((tenant, id))
        if job is None or self._leased(tenant, id, lease_id) is not None:
            return JobOutcome.UNKNOWN  # gone, or expired and about to go
        return JobOutcome.TWICE if job.answered else JobOutcome.LOST


class MemoryGuards:
    """`Guards` over a dictionary."""

    def __init__(self, tables: Callable[[], Tables]) -> None:
        self._tables = tables

    async def state(self, tenant: str) -> bytes:
        """The tenant's state; empty where none was ever written."""
        return self._tables().guards.get(tenant, b"")

    async def change(self, tenant: str, step: Callable[[bytes], tuple[bytes, T]]) -> T:
        """Replaces the tenant's state by the first that `step` gives for it, and answers the
        second."""
        guards = self._tables().guards
        after, answer = step(guards.get(tenant, b""))
        if after or tenant in guards:
            guards[tenant] = after
        return answer


class MemoryQuotas:
    """`TenantRows` over a dictionary. `tables` answers the tables, or raises StoreUnavailable."""

    def __init__(self, tables: Callable[[], Tables]) -> None:
        self._tables = tables

    async def rows(self) -> Mapping[str, bytes]:
        """Every quota, by tenant."""
        return dict(sorted(self._tables().quotas.items()))

    async def put(self, tenant: str, quota: bytes) -> None:
        """Replaces the tenant's quota; empty: removes it."""
        quotas = self._tables().quotas
        if quota:
            quotas[tenant] = quota
        else:
            quotas.pop(tenant, None)


class MemoryWorkloads:
    """`Workloads` over the dictionaries."""

    def __init__(self, tables: Callable[[], Tables]) -> None:
        self._tables = tables

    async def now(self, now_ms: int) -> Workload:
        """What waits and what runs."""
        tables = self._tables()
        debts = tables.debts.values()
        waiting = [debt for debt in debts if not debt.held and debt.lease_until_ms <= now_ms]
        held = sum(debt.held for debt in debts)
        return Workload(
            debts_waiting=len(waiting),
            debts_running=len(debts) - held - len(waiting),
            debts_held=held,
            oldest_ms=min((debt.queued_ms for debt in waiting), default=None),
            jobs_open=sum(not job.answered for job in tables.jobs.values()),
            guards=tuple(tables.guards.values()),
        )

    def queued(self) -> int:
        """Nothing waits to be written."""
        return 0
