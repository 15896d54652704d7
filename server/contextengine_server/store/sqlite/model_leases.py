"""The model leases of the SQLite store."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from contextengine_server.store.model_jobs import JobOutcome, ModelJob
from contextengine_server.store.sql import columns
from contextengine_server.store.sql.columns import job_values

from .index import Run, Write
from .statements import SQL


class SqliteModelLeases:
    """`ModelLeases` in a table. `read` and `write` run work on a reading connection and on the one
    that writes."""

    def __init__(self, read: Run, write: Write) -> None:
        self._read, self._write = read, write

    async def offer(self, job: ModelJob, now_ms: int) -> ModelJob:
        """Adds a job, or answers the one of its digest that is there and wanted still."""

        def work(db: sqlite3.Connection) -> ModelJob:
            db.execute(SQL.jobs.expire, {"tenant": job.tenant, "now": now_ms})
            known = _one(db, SQL.jobs.by_digest, tenant=job.tenant, digest=job.digest)
            if known is None:
                db.execute(SQL.jobs.insert, job_values(job))
                return job
            until = max(known.expire_ms, job.expire_ms)
            db.execute(SQL.jobs.prolong, {"tenant": job.tenant, "id": known.id, "until": until})
            return replace(known, expire_ms=until)

        return await self._write(work, tenant=job.tenant)

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
            "models": json.dumps(list(models)),
            "any_model": not models,
            "attempts": most_attempts,
        }

        def work(db: sqlite3.Connection) -> ModelJob | None:
            job = _one(db, SQL.jobs.due, **suits)
            if job is None:
                return None
            until = min(now_ms + lease_ms, job.expire_ms)
            db.execute(
                SQL.jobs.lease, {"tenant": tenant, "id": job.id, "lease": lease_id, "until": until}
            )
            return replace(job, lease_id=lease_id, lease_until_ms=until, attempts=job.attempts + 1)

        return await self._write(work, tenant=tenant)

    async def extend(self, tenant: str, id: str, lease_id: str, until_ms: int) -> bool:
        """Extends a lease; False where it is lost, or the job is answered or gone."""
        names = {"tenant": tenant, "id": id, "lease": lease_id, "until": until_ms}
        return await self._write(
            lambda db: db.execute(SQL.jobs.extend, names).rowcount > 0, tenant=tenant
        )

    async def answer(
        self, tenant: str, id: str, lease_id: str, result: bytes, now_ms: int
    ) -> JobOutcome:
        """Keeps a result, once."""
        names = {"tenant": tenant, "id": id, "lease": lease_id, "now": now_ms, "result": result}
        return await self._write(lambda db: _under_lease(db, SQL.jobs.answer, names), tenant=tenant)

    async def put_back(self, tenant: str, id: str, lease_id: str, not_before_ms: int) -> JobOutcome:
        """Ends a lease without a result."""
        names = {"tenant": tenant, "id": id, "lease": lease_id, "until": not_before_ms}
        return await self._write(
            lambda db: _under_lease(db, SQL.jobs.put_back, names), tenant=tenant
        )

    async def find(self, tenant: str, id: str) -> ModelJob | None:
        """A job; None where there is none."""
        return await self._read(lambda db: _one(db, SQL.jobs.one, tenant=tenant, id=id))

    async def coming(self, tenant: str, agent: str, session: str, now_ms: int) -> bool:
        """True where a job of the session has a result that was not taken, or a lease under which
        one may come."""
        names = {"tenant": tenant, "agent": agent, "session": session, "now": now_ms}
        return await self._read(
            lambda db: db.execute(SQL.jobs.coming, names).fetchone() is not None
        )

    async def settle(self, tenant: str, id: str, until_ms: int) -> None:
        """The result was taken: of the job stays, until it expires, that it was answered."""
        names = {"tenant": tenant, "id": id, "until": until_ms}
        await self._write(lambda db: db.execute(SQL.jobs.settle, names), tenant=tenant)

    async def remove(self, tenant: str, id: str, until_ms: int) -> bool:
        """Who wanted the job does so no longer. True where it is gone."""
        names = {"tenant": tenant, "id": id, "until": until_ms}
        if await self._write(lambda db: db.execute(SQL.jobs.remove, names).rowcount, tenant=tenant):
            return True
        return await self.find(tenant, id) is None

    async def open_count(self, tenant: str) -> int:
        """How many jobs of the tenant have no result."""
        return await self._read(
            lambda db: int(db.execute(SQL.jobs.open_count, {"tenant": tenant}).fetchone()[0])
        )


def _under_lease(db: sqlite3.Connection, statement: str, names: dict[str, Any]) -> JobOutcome:
    """Runs a statement that touches the job only under its lease, and says why where it did not."""
    if db.execute(statement, names).rowcount:
        return JobOutcome.ACCEPTED
    job = _one(db, SQL.jobs.one, tenant=names["tenant"], id=names["id"])
    if job is None or (not job.answered and job.lease_id == names["lease"] != ""):
        return JobOutcome.UNKNOWN  # gone, or expired and about to go
    return JobOutcome.TWICE if job.answered else JobOutcome.LOST


def _one(db: sqlite3.Connection, statement: str, **names: Any) -> ModelJob | None:
    return next(iter(columns.jobs(db.execute(statement, names))), None)
