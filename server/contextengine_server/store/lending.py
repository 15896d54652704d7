"""What a store keeps of the work that harnesses do with their models: jobs, who has them until
when, and what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class Outcome(Enum):
    """What became of a result."""

    ACCEPTED = "accepted"
    UNKNOWN = "unknown"
    """There is no such job: it was cancelled, given up or never there."""
    TWICE = "twice"
    """It has its result."""
    LOST = "lost"
    """The job was handed out again, or taken back, since the lease was given."""


@dataclass(slots=True, frozen=True)
class LentJob:
    """A job, as it is stored. Times are milliseconds since 1970 UTC."""

    tenant: str
    id: str
    digest: str
    """Of what is wanted: the same work is one job until its result is taken. Then empty."""
    agent: str
    session: str
    queued_ms: int
    expire_ms: int
    """When nobody wants it any more."""
    input_tokens: int = 0
    model: str = ""
    """The model wished for; empty: any."""
    attempts: int = 0
    """How often it was handed out."""
    lease_id: str = ""
    """The hand-out that may answer; empty: none."""
    lease_until_ms: int = 0
    """Until then it is handed to nobody else."""
    answered: bool = False
    work: bytes = b""
    """What is to be done, opaque here; empty once the result was taken."""
    result: bytes = b""
    """What came of it, opaque here; empty once it was taken."""


class LentJobs(Protocol):
    """The jobs of tenants. They go with their session when that is deleted."""

    async def offer(self, job: LentJob, now_ms: int) -> LentJob:
        """Adds a job; where one of its digest is there, and wanted still, answers that one, which
        is then wanted as long as this one at least. Erases those of the tenant that nobody wants
        any more."""

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
    ) -> LentJob | None:
        """Hands out the oldest job that is due and suits: of this agent (empty: any), with at most
        so many tokens (0: any), for one of these models or for any (none: whatever is wished for),
        not yet handed out too often. Counts the attempt."""

    async def extend(self, tenant: str, id: str, lease_id: str, until_ms: int) -> bool:
        """Extends a lease; False where it is lost, or the job is answered or gone."""

    async def answer(
        self, tenant: str, id: str, lease_id: str, result: bytes, now_ms: int
    ) -> Outcome:
        """Keeps a result, once. A lease that ran out still counts while nobody else was handed the
        job."""

    async def put_back(self, tenant: str, id: str, lease_id: str, not_before_ms: int) -> Outcome:
        """Ends a lease without a result: from a time on, the job may be handed out again. Otherwise
        as `answer`."""

    async def find(self, tenant: str, id: str) -> LentJob | None:
        """A job; None where there is none."""

    async def coming(self, tenant: str, agent: str, session: str, now_ms: int) -> bool:
        """True where a job of the session has a result that was not taken, or a lease under which
        one may come."""

    async def settle(self, tenant: str, id: str) -> None:
        """The result was taken: of the job stays, until it expires, that it was answered. None of
        its text does."""

    async def remove(self, tenant: str, id: str) -> None:
        """The job is no longer wanted."""

    async def open_count(self, tenant: str) -> int:
        """How many jobs of the tenant have no result."""
