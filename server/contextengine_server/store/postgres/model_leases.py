"""The model leases of the PostgreSQL store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from contextengine_server.store.model_jobs import JobOutcome, ModelJob
from contextengine_server.store.sql import columns
from contextengine_server.store.sql.columns import job_values

from .connections import Connections, Db
from .guards import LOCK
from .keys import number
from .statements import SQL
from .transactions import Transact


class PostgresModelLeases:
    """`ModelLeases` in a table. `write` runs work in a transaction."""

    def __init__(self, connections: Connections, write: Transact) -> None:
        self._connections, self._write = connections, write

    async def offer(self, job: ModelJob, now_ms: int) -> ModelJob:
        """Adds a job, or answers the one of its digest that is there and wanted still."""

        async def work(db: Db) -> ModelJob:
            # Of two who offer the same work, the second finds the job of the first.
            await db.value(LOCK, {"number": number("jobs", job.tenant)})
            await db.met(SQL.jobs.expire, {"tenant": job.tenant, "now": now_ms})
            known = await _one(db, SQL.jobs.by_digest, tenant=job.tenant, digest=job.digest)
            if known is None:
                await db.met(SQL.jobs.insert, job_values(job))
                return job
            until = max(known.expire_ms, job.expire_ms)
            names = {"tenant": job.tenant, "id": known.id, "until": until}
            await db.met(SQL.jobs.prolong, names)
            return replace(known, expire_ms=until)

        return await self._write(work)

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
        suits = {
            "tenant": tenant,
            "now": now_ms,
            "agent": agent,
            "tokens": most_tokens,
            "models": list(models),
            "any_model": not models,
            "attempts": most_attempts,
        }

        async def work(db: Db) -> ModelJob | None:
            job = await _one(db, f"{SQL.jobs.due} FOR UPDATE SKIP LOCKED", **suits)
            if job is None:
                return None
            until = min(now_ms + lease_ms, job.expire_ms)
            names = {"tenant": tenant, "id": job.id, "lease": lease_id, "until": until}
            await db.met(SQL.jobs.lease, names)
            return replace(job, lease_id=lease_id, lease_until_ms=until, attempts=job.attempts + 1)

        return await self._write(work)

    async def extend(self, tenant: str, id: str, lease_id: str, until_ms: int) -> bool:
        """Extends a lease; False where it is lost, or the job is answered or gone."""
        names = {"tenant": tenant, "id": id, "lease": lease_id, "until": until_ms}
        return await self._write(lambda db: db.met(SQL.jobs.extend, names)) > 0

    async def answer(
        self, tenant: str, id: str, lease_id: str, result: bytes, now_ms: int
    ) -> JobOutcome:
        """Keeps a result, once."""
        names = {"tenant": tenant, "id": id, "lease": lease_id, "now": now_ms, "result": result}
        return await self._write(lambda db: _under_lease(db, SQL.jobs.answer, names))

    async def put_back(self, tenant: str, id: str, lease_id: str, not_before_ms: int) -> JobOutcome:
        """Ends a lease without a result."""
        names = {"tenant": tenant, "id": id, "lease": lease_id, "until": not_before_ms}
        return await self._write(lambda db: _under_lease(db, SQL.jobs.put_back, names))

    async def find(self, tenant: str, id: str) -> ModelJob | None:
        """A job; None where there is none."""
        return await self._connections.read(_one, SQL.jobs.one, tenant=tenant, id=id)

    async def coming(self, tenant: str, agent: str, session: str, now_ms: int) -> bool:
        """True where a job of the session has a result that was not taken, or a lease under which
        one may come."""
        names = {"tenant": tenant, "agent": agent, "session": session, "now": now_ms}
        return await self._connections.read(Db.value, SQL.jobs.coming, names) is not None

    async def settle(self, tenant: str, id: str, until_ms: int) -> None:
        """The result was taken: of the job stays, until it expires, that it was answered."""
        names = {"tenant": tenant, "id": id, "until": until_ms}
        await self._write(lambda db: db.met(SQL.jobs.settle, names))

    async def remove(self, tenant: str, id: str, until_ms: int) -> bool:
        """Who wanted the job does so no longer. True where it is gone."""
        names = {"tenant": tenant, "id": id, "until": until_ms}
        if await self._write(lambda db: db.met(SQL.jobs.remove, names)):
            return True
        return await self.find(tenant, id) is None

    async def open_count(self, tenant: str) -> int:
        """How many jobs of the tenant have no result."""
        return int(await self._connections.read(Db.value, SQL.jobs.open_count, {"tenant": tenant}))


async def _under_lease(db: Db, statement: str, names: dict[str, Any]) -> JobOutcome:
    """Runs a statement that touches the job only under its lease, and says why where it did not."""
    if await db.met(statement, names):
        return JobOutcome.ACCEPTED
    job = await _one(db, SQL.jobs.one, tenant=names["tenant"], id=names["id"])
    if job is None or (not job.answered and job.lease_id == names["lease"] != ""):
        return JobOutcome.UNKNOWN  # gone, or expired and about to go
    return JobOutcome.TWICE if job.answered else JobOutcome.LOST


async def _one(db: Db, statement: str, /, **names: Any) -> ModelJob | None:
    found = columns.jobs(await db.rows(statement, names))
    return found[0] if found else None
