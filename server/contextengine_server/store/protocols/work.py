"""What a store does with work: debts of sessions, jobs for leased models, what guards summarizers,
what tenants may hold, and how much waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from contextengine_server.context.scope import Scope
from contextengine_server.store.debts import Debt
from contextengine_server.store.model_jobs import JobOutcome, ModelJob
from contextengine_server.store.rows import Workload

T = TypeVar("T")


class Debts(Protocol):
    """Background work that sessions owe, handed out by lease."""

    async def add_debt(self, debt: Debt) -> None:
        """Records background work outside a commit; where one of its kind is owed already, that one
        stays."""

    async def debts(self, scope: Scope) -> list[Debt]:
        """What a session owes, oldest first."""

    async def debtors(self, now_ms: int) -> list[str]:
        """The tenants with a debt that `claim_debt` would hand out, who has waited longest
        first."""

    async def claim_debt(
        self, owner: str, now_ms: int, lease_ms: int, *, tenant: str = ""
    ) -> Debt | None:
        """Leases the oldest debt of a tenant (empty: of any) that is due, neither held nor under a
        live lease, and counts the attempt. One that was put back for later is as old as that. One
        job at a time per session: while one of its debts is under a live lease, its others are not
        due. Whoever would have to wait for more than LONGEST_WAIT_MS is due."""

    async def extend_debt(self, debt: Debt, until_ms: int) -> bool:
        """Extends the lease that `claim_debt` answered with; False where it was lost: claimed again
        after it ran out, settled, or deleted."""

    async def release_debt(
        self, debt: Debt, *, done: bool, not_before_ms: int = 0, error: str = "", held: bool = False
    ) -> None:
        """Ends a lease: removes the debt, or puts it back for later. Does nothing where the lease
        was lost."""


class JobQueue(Protocol):
    """The jobs for leased models: what is wanted, and what came of it. A job goes with its session
    when that is deleted."""

    async def offer(self, job: ModelJob, now_ms: int) -> ModelJob:
        """Adds a job; where one of its digest is there, and wanted still, answers that one, which
        is then wanted as long as this one at least. Erases those of the tenant that nobody wants
        any more."""

    async def find(self, tenant: str, id: str) -> ModelJob | None:
        """A job; None where there is none."""

    async def coming(self, tenant: str, agent: str, session: str, now_ms: int) -> bool:
        """True where a job of the session has a result that was not taken, or a lease under which
        one may come."""

    async def settle(self, tenant: str, id: str, until_ms: int) -> None:
        """The result was taken by who wanted it until then: of the job stays, until it expires,
        that it was answered. None of its text does. Does nothing where somebody wants it for
        longer: that one takes it as well."""

    async def remove(self, tenant: str, id: str, until_ms: int) -> bool:
        """Who wanted the job until then does so no longer. True where it is gone, also where it
        was; False where somebody wants it for longer."""

    async def open_count(self, tenant: str) -> int:
        """How many jobs of the tenant have no result."""


class JobLeases(Protocol):
    """Who works on a job until when."""

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
        """Hands out the oldest job that is due and suits: of this agent (empty: any), with at most
        so many tokens (0: any), for one of these models or for any (none: whatever is wished for),
        not yet handed out too often. Counts the attempt."""

    async def extend(self, tenant: str, id: str, lease_id: str, until_ms: int) -> bool:
        """Extends a lease, and never shortens it; False where it is lost, or the job is answered or
        gone."""

    async def answer(
        self, tenant: str, id: str, lease_id: str, result: bytes, now_ms: int
    ) -> JobOutcome:
        """Keeps a result, once. A lease that ran out still counts while nobody else was handed the
        job."""

    async def put_back(self, tenant: str, id: str, lease_id: str, not_before_ms: int) -> JobOutcome:
        """Ends a lease without a result: from a time on, the job may be handed out again. Otherwise
        as `answer`."""


class ModelLeases(JobQueue, JobLeases, Protocol):
    """The work that harnesses do with their models."""


class Guards(Protocol):
    """A state for each tenant of what guards its summarizers, opaque here; for the empty tenant, of
    what the server does by itself. It outlives the process."""

    async def state(self, tenant: str) -> bytes:
        """The tenant's state; empty where none was ever written."""

    async def change(self, tenant: str, step: Callable[[bytes], tuple[bytes, T]]) -> T:
        """Replaces the tenant's state (empty: none yet) by the first that `step` gives for it, and
        answers the second.

        One transaction: no two changes of a tenant overlap. `step` may be called off the event loop
        and more than once. Where it raises, so does this, and nothing is changed.
        """


class TenantRows(Protocol):
    """What the server's owner set for tenants, opaque here, a value for each. It outlives the
    process, and the tenant's own data."""

    async def rows(self) -> Mapping[str, bytes]:
        """Every value, by tenant, over all tenants."""

    async def put(self, tenant: str, quota: bytes) -> None:
        """Replaces the tenant's value; empty: removes it."""


class Workloads(Protocol):
    """The work that waits, for gauges and doctor and never for a caller's answer."""

    async def now(self, now_ms: int) -> Workload:
        """What waits and what runs, over all tenants."""

    def queued(self) -> int:
        """Writes that wait for the one who writes. Costs nothing, from any thread."""
