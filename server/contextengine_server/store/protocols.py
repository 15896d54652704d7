"""What a store does: small protocols, joined into `Store`.

Who needs a few of the methods asks for their protocol alone. Every method names the session or the
tenant that it works in, and none reads across, but those that serve the process and answer no
caller: `idle_sessions`, `claim_debt`, `spawns.expire`, `index.behind`, `workload`, and `counts`
without a tenant. No read limits silently. Every method that reads or writes raises StoreUnavailable
where the database cannot be used now, or is closed.

A store knows nothing of views, laws or engines: it keeps what it is given. What each method
promises is held by the suite that every store passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from contextengine_server.context.scope import Scope
from contextengine_server.store.rows import (
    Assignment,
    Changes,
    Commit,
    Debt,
    Deleted,
    EndedSpawn,
    JobOutcome,
    MessageRow,
    ModelJob,
    SessionHead,
    Spawn,
    StoredReply,
    StoreHealth,
    SummaryRow,
    Workload,
)
from contextengine_server.store.search import SearchIndex

T = TypeVar("T")

Answering = Callable[[Deleted], StoredReply] | None
"""Makes of a deletion what its request id is answered with; None: nothing is kept."""


class Connection(Protocol):
    """The store's tie to its database."""

    async def open(self) -> None:
        """Opens, locks and migrates the database. Raises StoreRefused."""

    async def close(self) -> None:
        """Writes what is queued, then closes. Safe twice."""

    async def health(self) -> StoreHealth:
        """How the store is. Raises nothing."""


class Heads(Protocol):
    """Where sessions stand."""

    async def head(self, scope: Scope) -> SessionHead | None:
        """The session's head, or None where there is no such session."""

    async def current_session(self, tenant: str, agent: str, session_key: str) -> str | None:
        """The id of the key's current session."""

    async def changes(self, scope: Scope, since: int) -> Changes | None:
        """What changed since a revision; None where the session is gone."""


class Commits(Protocol):
    """Changes of sessions."""

    async def commit(self, commit: Commit) -> None:
        """Writes one change durably; returns after it is. Many sessions' commits may share one
        transaction, and one that fails fails alone. A caller that is cancelled while it waits does
        not take the change back.

        Raises RevisionConflict, DuplicateHostIds, DuplicateRequest, StoreUnavailable; StoreError
        where the commit is at odds with itself or the rows: an incomplete scope, a sequence or
        summary id that is stored, facts of no stored message, a summary to retire that is not live,
        `bind_key` without a key, a debt of another session."""

    async def delete(
        self,
        scope: Scope,
        *,
        expected_revision: int | None,
        cascade: bool,
        answer: Answering = None,
    ) -> Deleted:
        """Erases a session with everything derived from it, and with `cascade` all that stand on
        it, in one transaction. A session that is not there is erased already, unless a revision is
        expected. What `answer` makes of it is kept with the agent, where `reply` finds it without a
        session's name. Raises HasDependents, RevisionConflict."""


class Messages(Protocol):
    """A session's own messages. Facts are always those of now."""

    async def messages(
        self,
        scope: Scope,
        first: int = 1,
        last: int | None = None,
        *,
        as_of: int | None = None,
        retired: bool = False,
    ) -> list[MessageRow]:
        """Those with first <= sequence <= last, in order: live now, or live as of a revision, or
        with `retired` all of either."""

    async def messages_by_host_id(self, scope: Scope, host_ids: Sequence[str]) -> list[MessageRow]:
        """Live messages with these host ids, in order; an id that no live message has is passed
        over."""

    async def atom_from(self, scope: Scope, start: int) -> MessageRow | None:
        """The first live message that begins an atom with at least this running sum before it."""

    async def atom_of(self, scope: Scope, sequence: int) -> list[MessageRow]:
        """All live messages of the atom that shows a sequence, late results last; empty where none
        does."""

    async def pinned_atoms(self, scope: Scope, before: int) -> list[list[MessageRow]]:
        """For every live atom that begins before a sequence and holds a pinned message: all its
        live messages, late results last. Atoms in the order of their first sequences; a pinned
        message that no atom shows is passed over."""

    async def late_results(self, scope: Scope, first: int, last: int) -> list[MessageRow]:
        """Live messages that came late for atoms that begin with first <= sequence <= last, in
        order; shown there or as notes."""


class Summaries(Protocol):
    """A session's own summaries."""

    async def summaries(
        self, scope: Scope, *, as_of: int | None = None, retired: bool = False
    ) -> list[SummaryRow]:
        """They, ordered by first sequence, then depth: live now, or live as of a revision, or with
        `retired` all of either."""


class Replies(Protocol):
    """What request ids were answered with."""

    async def reply(self, scope: Scope, request_id: str) -> StoredReply | None:
        """What a request id was answered with."""

    async def remember(self, scope: Scope, reply: StoredReply) -> None:
        """Keeps an answer outside a commit; the first one under an id stays. Does nothing where
        there is no such session."""

    async def stray_replies(self, scope: Scope, newest: int, *, erase: bool = False) -> int:
        """How many answers are kept for revisions above `newest` (-1: all); with `erase` they are
        erased."""


class Listing(Protocol):
    """Which sessions there are."""

    async def list_sessions(
        self,
        tenant: str,
        *,
        agent: str = "",
        session_key: str = "",
        limit: int,
        after: tuple[int, str, str] | None = None,
    ) -> list[SessionHead]:
        """Heads, newest write first, at most `limit`; `after` is (updated_ms, agent, session) of
        the last one seen. Ties fall by agent, then session, both descending."""

    async def idle_sessions(self, before_ms: int, limit: int) -> list[SessionHead]:
        """Sessions of every tenant that did not end and were last written before a time, oldest
        first."""

    async def dependents(self, scope: Scope) -> list[Scope]:
        """Sessions that stand on this one directly, by name."""

    async def counts(self, tenant: str | None = None) -> dict[str, int]:
        """Rows by kind: sessions, messages, summaries, debts; of a tenant or of all."""


class Debts(Protocol):
    """Background work that sessions owe, handed out by lease."""

    async def add_debt(self, debt: Debt) -> None:
        """Records background work outside a commit; where one of its kind is owed already, that one
        stays."""

    async def debts(self, scope: Scope) -> list[Debt]:
        """What a session owes, oldest first."""

    async def claim_debt(self, owner: str, now_ms: int, lease_ms: int) -> Debt | None:
        """Leases the oldest debt that is due, neither held nor under a live lease, and counts the
        attempt. One that was put back for later is as old as that. One job at a time per session:
        while one of its debts is under a live lease, its others are not due."""

    async def extend_debt(self, debt: Debt, until_ms: int) -> bool:
        """Extends the lease that `claim_debt` answered with; False where it was lost: claimed again
        after it ran out, settled, or deleted."""

    async def release_debt(
        self, debt: Debt, *, done: bool, not_before_ms: int = 0, error: str = "", held: bool = False
    ) -> None:
        """Ends a lease: removes the debt, or puts it back for later. Does nothing where the lease
        was lost."""


class Assignments(Protocol):
    """What operators chose."""

    async def assignments(self, tenant: str) -> list[Assignment]:
        """What was chosen within a tenant, by agent, then session."""

    async def assign(self, assignment: Assignment) -> None:
        """Records a choice; one with no engine and no options removes it."""


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

    async def settle(self, tenant: str, id: str) -> None:
        """The result was taken: of the job stays, until it expires, that it was answered. None of
        its text does."""

    async def remove(self, tenant: str, id: str) -> None:
        """The job is no longer wanted."""

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


class SpawnRecords(Protocol):
    """Which children there are."""

    async def prepare(self, spawn: Spawn, commit: Commit, most_live: int) -> Spawn:
        """Writes a spawn and the commit that makes its child, both or neither. Where the parent was
        asked with this request id before, writes nothing and answers that spawn.

        Raises TooManyChildren, what `Commits.commit` raises, and RevisionConflict where the parent
        is gone."""

    async def find(self, tenant: str, token: str) -> Spawn | None:
        """A spawn by its token; None where there is none."""

    async def asked(self, parent: Scope, request_id: str) -> Spawn | None:
        """The spawn that a request of this id made; None where there is none."""

    async def newest_of(self, child: Scope) -> Spawn | None:
        """How a session was spawned; None where it was not."""

    async def live_children(self, parent: Scope) -> int:
        """How many live children a session has."""


class SpawnLives(Protocol):
    """How long children live, and what their tokens are worth.

    A child that is taken back is erased like a deleted session, and its key named as before, where
    it has no messages of its own and nobody stands on it; else it stays as it is, and only the
    token is void.
    """

    async def start(self, tenant: str, token: str, now_ms: int) -> bool:
        """The child is there. False where the spawn is over, or its time is."""

    async def spend(self, tenant: str, token: str, tokens: int) -> bool:
        """Counts tokens that were read, all or none of them. False where the grant does not reach,
        or the spawn is over."""

    async def end(
        self, tenant: str, token: str, reason: str, now_ms: int, *, take_back: bool
    ) -> EndedSpawn | None:
        """Ends a live spawn; None where there is none."""

    async def expire(self, now_ms: int, limit: int) -> Sequence[EndedSpawn]:
        """Of every tenant, ends spawns whose time has passed: takes a child back that never
        started; one that wrote since gets its time anew. Forgets those that ended long ago
        (`rows.KEPT_MS`). At most `limit` of either."""

    async def expire_one(self, tenant: str, token: str, now_ms: int) -> EndedSpawn | None:
        """The same for one spawn, where it is due; None where it goes on."""


class Spawns(SpawnRecords, SpawnLives, Protocol):
    """The spawns of tenants. They go with their parent and with their child when that is
    deleted."""


class Guards(Protocol):
    """A state for each tenant of what guards its summarizers, opaque here. It outlives the
    process."""

    async def state(self, tenant: str) -> bytes:
        """The tenant's state; empty where none was ever written."""

    async def change(self, tenant: str, step: Callable[[bytes], tuple[bytes, T]]) -> T:
        """Replaces the tenant's state (empty: none yet) by the first that `step` gives for it, and
        answers the second.

        One transaction: no two changes of a tenant overlap. `step` may be called off the event loop
        and more than once. Where it raises, so does this, and nothing is changed.
        """


class Workloads(Protocol):
    """The work that waits, for gauges and doctor and never for a caller's answer."""

    async def now(self, now_ms: int) -> Workload:
        """What waits and what runs, over all tenants."""

    def queued(self) -> int:
        """Writes that wait for the one who writes. Costs nothing, from any thread."""


class Store(
    Connection,
    Heads,
    Commits,
    Messages,
    Summaries,
    Replies,
    Listing,
    Debts,
    Assignments,
    Protocol,
):
    """Everything that a store does."""

    index: SearchIndex
    guards: Guards
    model_leases: ModelLeases
    spawns: Spawns
    workload: Workloads
