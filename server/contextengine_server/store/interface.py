"""What a store is: rows, one commit at a time, and reads that never limit silently.

Every store passes the suite in tests/contract/store. Messages and summaries are immutable but for
the revision that retired them and for a message's facts (`step`, `start`, `late_of`), which the
session core works out and may work out again. A store knows nothing of views, laws or engines: it
keeps what it is given. Times are milliseconds since 1970 UTC. Tokens are counted in the session's
reference encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from contextengine_server.context.scope import Scope
from contextengine_server.context.value import value
from contextengine_server.store.condition import StoreHealth, Workloads
from contextengine_server.store.guards import Guards
from contextengine_server.store.lending import LentJobs
from contextengine_server.store.search import SearchIndex
from contextengine_server.store.spawns import Spawns


@value
class SessionHead:
    """The one row of a session: what must be known before anything else is read. `state` is the
    session core's own JSON."""

    scope: Scope
    incarnation: str
    """Names this life of the session; a deleted and recreated session has another."""
    revision: int
    last_sequence: int
    session_key: str = ""
    message_count: int = 0
    """Messages in the view, covered ones included."""
    message_tokens: int = 0
    """Their tokens as shown verbatim: the running sum at the end of the view."""
    summary_count: int = 0
    generation: int = 0
    ended: bool = False
    created_ms: int = 0
    updated_ms: int = 0
    parent_session: str = ""
    """The session (same tenant and agent) whose view goes on here; empty: none."""
    parent_revision: int = 0
    parent_sequence: int = 0
    """The parent's rows up to this sequence, as of `parent_revision`, begin this session's view."""
    model: str = ""
    provider: str = ""
    state: bytes = b"{}"


@value
class MessageRow:
    """One stored message."""

    sequence: int
    role: int
    """The wire's Role number; unknown numbers are kept."""
    tokens: int
    content_hash: bytes
    body: bytes
    """The encoded message as it came."""
    created_revision: int
    """The revision of the commit that brought it, so it never falls from one sequence to the
    next."""
    retired_revision: int = 0
    """0: in the view."""
    host_id: str = ""
    """Unique among the live rows of its session where not empty."""
    time_ms: int | None = None
    pinned: bool = False
    step: int | None = None
    """Ordinal of the atom in which the message is shown; None: it is not shown."""
    start: int | None = None
    """On the first message of an atom: the running token sum before the atom. None on all
    others."""
    late_of: int | None = None
    """On a late result: the first sequence of the atom that it is shown in."""


@value
class SummaryRow:
    """One stored summary over one contiguous range of sequences."""

    id: str
    """Unique in its session for ever, retired ones included."""
    depth: int
    first_sequence: int
    last_sequence: int
    message_count: int
    source_tokens: int
    tokens: int
    text: str
    created_revision: int
    first_step: int = 0
    """The step of the first atom that it covers."""
    last_step: int = 0
    span_start: int = 0
    """The running token sum before the first atom that it covers."""
    span_end: int = 0
    """The running token sum behind the last atom that it covers."""
    before_view: int = 0
    """The tokens of the view just before the commit. With the three below it tells what was evicted
    then, at any budget."""
    before_total: int = 0
    """The running token sum behind the newest atom just before the commit."""
    before_fixed: int = 0
    """The tokens of the summaries and leading messages shown just before the commit."""
    before_peak: int = 0
    """The tokens of the largest user message just before the commit."""
    retired_revision: int = 0
    children: tuple[str, ...] = ()
    start_ms: int | None = None
    end_ms: int | None = None
    summarizer: str = ""
    fallback: bool = False
    generation: int = 0
    origin: str = "engine"
    """`engine`, `runtime` (built-in compaction of a delegating engine) or `host`."""


@value
class Facts:
    """Facts of a stored message, worked out again."""

    sequence: int
    step: int | None
    start: int | None
    late_of: int | None


@value
class StoredReply:
    """What a request id was answered with, so that the same request again gets the same answer."""

    request_id: str
    digest: bytes
    """Of the request: another request under the same id is told apart by it."""
    reply: bytes


@value
class Debt:
    """Background work that a session owes. The only record of it; a queue merely wakes workers."""

    scope: Scope
    kind: str
    queued_ms: int
    not_before_ms: int = 0
    attempts: int = 0
    lease_owner: str = ""
    lease_until_ms: int = 0
    held: bool = False
    """True: not to be claimed until the hold is lifted (a compaction that was undone)."""
    cause: str = ""
    """The traceparent of the call that caused it."""
    last_error: str = ""
    payload: bytes = b"{}"


@value
class Commit:
    """One change of one session, all or nothing.

    The store checks that the session still is at `expected_revision` of `head.incarnation` (0: that
    it does not exist), then writes `head` and everything else: what is retired, then shifts, then
    facts, then new rows. So a shift moves no row of its own commit, and facts have the last word.
    Where several things are wrong, an answered request id is told before a lost race, and that
    before a duplicate host id.
    """

    head: SessionHead
    """The head after the commit."""
    expected_revision: int
    messages: Sequence[MessageRow] = ()
    retire_after: int | None = None
    """Retire all live messages of this session with a sequence above this one, at
    `head.revision`."""
    retire_summaries: Sequence[str] = ()
    """Retire these live summaries, at `head.revision`."""
    summaries: Sequence[SummaryRow] = ()
    facts: Sequence[Facts] = ()
    """Of the session's own stored messages, retired ones included."""
    shifts: Sequence[tuple[int, int]] = ()
    """(sequence, delta), in order, over the rows as they were before this commit: add delta to
    `start` of every live message above the sequence, and to the spans of every live summary that
    begins above it."""
    reply: StoredReply | None = None
    bind_key: bool = False
    """Make this the current session of `head.session_key`."""
    debt: Debt | None = None
    """Add this debt; where one of its kind is owed already, that one stays and only a changed hold
    is taken over."""
    settle_debt: str = ""
    """Remove the debt of this kind, leased or not; `debt` may put a new one in its place."""


@value
class Changes:
    """What changed in a session since a revision: rows created or retired since, in order."""

    head: SessionHead
    messages: Sequence[MessageRow]
    summaries: Sequence[SummaryRow]


@value
class Deleted:
    """What a deletion erased."""

    sessions: tuple[str, ...] = ()
    messages: int = 0
    summaries: int = 0


Answering = Callable[[Deleted], StoredReply] | None


@value
class Assignment:
    """An operator's choice for (tenant), (tenant, agent) or (tenant, agent, session), which goes
    with the session; empty names mean every one."""

    tenant: str
    agent: str
    session: str
    engine_id: str = ""
    options: bytes = b"{}"


class StoreError(Exception):
    """The store could not do what was asked."""


class RevisionConflict(StoreError):
    """The session is at another revision, or in another incarnation, than the commit expected."""

    def __init__(self, scope: Scope, expected: int, actual: int | None) -> None:
        super().__init__(f"{scope.session}: expected revision {expected}, found {actual}")
        self.scope, self.expected, self.actual = scope, expected, actual


class DuplicateHostIds(StoreError):
    """Messages of the commit carry host ids that live rows of the session have. Nothing was
    written."""

    def __init__(self, ids: Sequence[str]) -> None:
        super().__init__(f"{len(ids)} message ids are stored already")
        self.ids = tuple(ids)


class DuplicateRequest(StoreError):
    """The request id was answered before. Nothing was written."""

    def __init__(self, stored: StoredReply) -> None:
        super().__init__(f"request id {stored.request_id!r} was answered before")
        self.stored = stored


class HasDependents(StoreError):
    """Other sessions stand on the one to delete."""

    def __init__(self, sessions: Sequence[str]) -> None:
        super().__init__(f"{len(sessions)} sessions stand on it: {', '.join(sessions[:5])}")
        self.sessions = tuple(sessions)


class StoreUnavailable(StoreError):
    """The store cannot write or read now (disk full, I/O error, closed). Nothing was changed."""


class StoreRefused(StoreError):
    """The database must not be opened: damaged, foreign, newer than this program, in use, out of
    reach; the text says what to do."""


class Store(Protocol):
    """Rows of sessions. Every method names the scope or the tenant it works in, and none reads
    across, but those that serve the process and answer no caller: `idle_sessions`, `claim_debt`,
    `spawns.expire`, `workload`, and `counts` without a tenant. Every read and write raises
    StoreUnavailable where the database cannot be used now, or is closed."""

    index: SearchIndex
    guards: Guards
    lent: LentJobs
    spawns: Spawns
    workload: Workloads

    async def open(self) -> None:
        """Opens, locks and migrates the database. Raises StoreRefused."""

    async def close(self) -> None:
        """Writes what is queued, then closes. Safe twice."""

    async def health(self) -> StoreHealth:
        """How the store is."""

    async def head(self, scope: Scope) -> SessionHead | None:
        """The session's head, or None where there is no such session."""

    async def current_session(self, tenant: str, agent: str, session_key: str) -> str | None:
        """The id of the key's current session."""

    async def changes(self, scope: Scope, since: int) -> Changes | None:
        """What changed since a revision; None where the session is gone."""

    async def commit(self, commit: Commit) -> None:
        """Writes one change durably; returns after it is. Many sessions' commits share one fsync,
        and one that fails fails alone. A caller that is cancelled while it waits does not take the
        change back.

        Raises RevisionConflict, DuplicateHostIds, DuplicateRequest, StoreUnavailable; StoreError
        where the commit is at odds with itself or the rows: an incomplete scope, a sequence or
        summary id that is stored, facts of no stored message, a summary to retire that is not live,
        `bind_key` without a key, a debt of another session."""

    async def messages(
        self,
        scope: Scope,
        first: int = 1,
        last: int | None = None,
        *,
        as_of: int | None = None,
        retired: bool = False,
    ) -> list[MessageRow]:
        """The session's own messages with first <= sequence <= last, in order: live now, or live as
        of a revision, or with `retired` all of either. Facts are always those of now."""

    async def messages_by_host_id(self, scope: Scope, host_ids: Sequence[str]) -> list[MessageRow]:
        """Live messages with these host ids, in order; an id that no live message has is passed
        over."""

    async def atom_from(self, scope: Scope, start: int) -> MessageRow | None:
        """The first live message that begins an atom with at least this running sum before it."""

    async def pinned_atoms(self, scope: Scope, before: int) -> list[list[MessageRow]]:
        """For every live atom that begins before a sequence and holds a pinned message: all its
        live messages, late results last. Atoms in the order of their first sequences; a pinned
        message that no atom shows is passed over."""

    async def atom_of(self, scope: Scope, sequence: int) -> list[MessageRow]:
        """All live messages of the atom that shows a sequence, late results last; empty where none
        does."""

    async def late_results(self, scope: Scope, first: int, last: int) -> list[MessageRow]:
        """Live messages that came late for atoms that begin with first <= sequence <= last, in
        order; shown there or as notes."""

    async def summaries(
        self, scope: Scope, *, as_of: int | None = None, retired: bool = False
    ) -> list[SummaryRow]:
        """The session's own summaries ordered by first sequence, then depth: live now, or live as
        of a revision, or with `retired` all of either."""

    async def reply(self, scope: Scope, request_id: str) -> StoredReply | None:
        """What a request id was answered with."""

    async def remember(self, scope: Scope, reply: StoredReply) -> None:
        """Keeps an answer outside a commit; the first one under an id stays. Does nothing where
        there is no such session."""

    async def stray_replies(self, scope: Scope, newest: int, *, erase: bool = False) -> int:
        """How many answers are kept for revisions above `newest` (-1: all); with `erase` they are
        erased."""

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

    async def assignments(self, tenant: str) -> list[Assignment]:
        """What operators chose within a tenant, by agent, then session."""

    async def assign(self, assignment: Assignment) -> None:
        """Records a choice; one with no engine and no options removes it."""

    async def counts(self, tenant: str | None = None) -> dict[str, int]:
        """Rows by kind: sessions, messages, summaries, debts; of a tenant or of all."""
