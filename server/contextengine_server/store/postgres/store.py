"""The PostgreSQL store: any number of servers over one database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from operator import attrgetter
from typing import TypeVar

from contextengine_server.context.scope import Scope
from contextengine_server.store.commits import check
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.protocols import (
    AgentMemory,
    Answering,
    Archives,
    Chunks,
    Feed,
    Guards,
    Leases,
    ModelLeases,
    Observer,
    Spawns,
    SpendLedger,
    TenantRows,
    Workloads,
)
from contextengine_server.store.rows import (
    Changes,
    Commit,
    Deleted,
    MessageRow,
    SessionHead,
    StoredReply,
    StoreHealth,
    SummaryRow,
)
from contextengine_server.store.search import SearchIndex
from contextengine_server.store.sql.columns import REPLY, reply_values

from . import database, reads, writes
from .agents.chunks import PostgresChunks
from .agents.facts import PostgresAgentFacts
from .agents.ledger import PostgresLedger
from .archives import PostgresArchives
from .clock import DatabaseClock
from .connections import Connections, Db
from .debts import PostgresDebts, PostgresWorkloads
from .guards import PostgresGuards, PostgresQuotas
from .head_lookups import HeadLookups
from .keys import named
from .listings import PostgresListings
from .migrations import HEAD
from .model_leases import PostgresModelLeases
from .options import parse, place
from .search.index import PostgresIndex
from .servers.replicas import PostgresFeed, PostgresLeases
from .spawns import PostgresSpawns
from .statements import REMEMBER, SQL
from .transactions import Transactions

T = TypeVar("T")

_ADVICE = "Look at the database and the way to it; the server goes on as soon as it answers."

_BESIDE = attrgetter(
    *sorted({*Commit.__struct_fields__} - {"head", "expected_revision", "messages", "retire_after"})
)
"""What a commit may bring besides a head and messages."""


def _appends(change: Commit) -> bool:
    """True for the usual commit, which brings an existing session's head on and adds messages, and
    nothing else. There is nothing to check of it."""
    return bool(
        all(change.head.scope)
        and change.expected_revision
        and change.messages
        and change.retire_after is None
        and not change.head.archived
        and not any(_BESIDE(change))
    )


class PostgresStore(PostgresListings, PostgresDebts):
    """`Store` in a PostgreSQL database. Use it on one event loop.

    Durable means what the database's `synchronous_commit` makes of it, which is the disk unless
    somebody changed it.
    """

    def __init__(self, url: str) -> None:
        self._place = place(url)
        self._connections = Connections(parse(url))
        self._clock = DatabaseClock(self._connections)
        self._heads = HeadLookups(self._connections)
        self._observers: list[Observer] = []
        self._transactions = Transactions(self._connections, self._committed)
        write = self._transactions.transact
        self.index: SearchIndex = PostgresIndex(self._connections, write)
        self.guards: Guards = PostgresGuards(self._connections, write)
        self.quotas: TenantRows = PostgresQuotas(self._connections, write)
        self.model_leases: ModelLeases = PostgresModelLeases(self._connections, write)
        self.spawns: Spawns = PostgresSpawns(
            self._connections, write, self._committed, self._erased
        )
        self.ledger: SpendLedger = PostgresLedger(self._connections)
        self.memory: AgentMemory = PostgresAgentFacts(self._connections, write)
        self.chunks: Chunks = PostgresChunks(self._connections, write)
        self.archives: Archives = PostgresArchives(self._connections, write, self._committed)
        self._feed = PostgresFeed(self._connections, write)
        self.feed: Feed = self._feed
        self.leases: Leases = PostgresLeases(self._connections, write)
        self.workload: Workloads = PostgresWorkloads(self._connections, self._transactions.queued)

    # Life

    async def open(self) -> None:
        """Connects, and brings the database to the present schema. Raises StoreRefused."""
        await database.prepare(self._connections, self._place)
        await self._connections.open()
        await self._clock.start()

    async def close(self) -> None:
        """Writes what is queued, then closes. Safe twice."""
        await self._transactions.close()
        await self._heads.close()
        await self._feed.close()
        await self._clock.stop()
        await self._connections.close()

    async def health(self) -> StoreHealth:
        """How the store is: whether the database answers."""
        facts = {"place": self._place, "schema": HEAD}
        try:
            facts |= await self._connections.read(database.facts)
        except StoreUnavailable as error:
            said = str(error) if self._connections.is_open else "closed"
            return StoreHealth(False, said, facts, _ADVICE)
        return StoreHealth(True, "open", facts)

    def clock_ms(self) -> int:
        """The database's clock, as far as a message to it tells."""
        return self._clock.now_ms()

    async def probe(self) -> None:
        """Writes a row as it is."""
        await self._transactions.transact(database.touch)

    async def vacuum(self) -> None:
        """Takes what was erased out of the tables, so that its space is used again."""
        await self._connections.read(database.vacuum)

    def observe(self, observer: Observer) -> None:
        """From now on, tells of what was written."""
        self._observers.append(observer)

    async def _write(
        self, work: Callable[[Db], Awaitable[T]], then: Callable[[T], None] = lambda result: None
    ) -> T:
        return await self._transactions.transact(work, then)

    # Sessions

    async def head(self, scope: Scope) -> SessionHead | None:
        """The session's head, or None where there is no such session."""
        return await self._heads.of(scope)

    async def current_session(self, tenant: str, agent: str, session_key: str) -> str | None:
        """The id of the key's current session."""
        return await self._connections.read(reads.current_session, tenant, agent, session_key)

    async def changes(self, scope: Scope, since: int) -> Changes | None:
        """What changed since a revision; None where the session is gone."""
        return await self._connections.read(reads.changes, scope, since)

    def commit(self, commit: Commit) -> Awaitable[None]:
        """Writes one change durably. A caller that is cancelled does not take the change back.

        Raises RevisionConflict, ParentGone, DuplicateHostIds, DuplicateRequest, StoreUnavailable,
        StoreUncertain; StoreError where the commit contradicts itself or the rows.
        """
        usual = _appends(commit)
        if not usual:
            check(commit)
        return self._transactions.commit(commit, usual=usual)

    def _committed(self, commit: Commit) -> None:
        if not commit.head.revision:
            return  # staged: nobody sees it
        self._heads.known.committed(commit)
        for observer in self._observers:
            observer.committed(commit)
        if commit.messages or commit.summaries or commit.adopts:
            self.index.noted(commit.head.scope)

    def _erased(self, scopes: Sequence[Scope]) -> None:
        for observer in self._observers:
            observer.erased(scopes)
        for scope in scopes:
            self.index.noted(scope)

    async def delete(
        self,
        scope: Scope,
        *,
        expected_revision: int | None,
        cascade: bool,
        answer: Answering = None,
        overwritten: bool = True,
    ) -> Deleted:
        """Erases a session with all derived from it. Raises HasDependents, RevisionConflict."""

        async def work(db: Db) -> Deleted:
            deleted = await writes.delete(db, scope, expected_revision, cascade)
            if answer is not None:
                await writes.remember_of_agent(db, scope, answer(deleted))
            return deleted

        def then(deleted: Deleted) -> None:
            self._erased([scope._replace(session=session) for session in deleted.sessions])

        return await self._write(work, then)

    async def unstage(self, scope: Scope, incarnation: str, above: int = 0) -> None:
        """Erases messages of a staged session above a sequence; above 0 the session as well."""
        await self._write(lambda db: writes.unstage(db, scope, incarnation, above))

    async def forget(self, tenant: str, agent: str = "") -> int:
        """Erases what stands beside the sessions of an agent, or of a tenant and all its agents."""
        return await self._write(lambda db: writes.forget(db, tenant, agent))

    # Messages and summaries

    async def messages(
        self,
        scope: Scope,
        first: int = 1,
        last: int | None = None,
        *,
        as_of: int | None = None,
        retired: bool = False,
    ) -> list[MessageRow]:
        """The session's own messages in a range, in order: live now, as of a revision, or all."""
        return await self._connections.read(reads.messages, scope, first, last, as_of, retired)

    async def messages_at(
        self,
        scope: Scope,
        sequences: Sequence[int],
        *,
        as_of: int | None = None,
        retired: bool = False,
    ) -> list[MessageRow]:
        """Those of the session's messages that have these sequences, in order."""
        read = self._connections.read
        return await read(reads.messages_at, scope, sequences, as_of, retired)

    async def messages_by_host_id(self, scope: Scope, host_ids: Sequence[str]) -> list[MessageRow]:
        """Live messages with these host ids, in order."""
        return await self._connections.read(reads.messages_by_host_id, scope, host_ids)

    async def atom_from(self, scope: Scope, start: int) -> MessageRow | None:
        """The first live message that begins an atom with at least this running sum before it."""
        return await self._connections.read(reads.atom_from, scope, start)

    async def pinned_atoms(self, scope: Scope, before: int) -> list[list[MessageRow]]:
        """For every live atom that begins before a sequence and holds a pinned message: all its
        live messages, late results included."""
        return await self._connections.read(reads.pinned_atoms, scope, before)

    async def atom_of(self, scope: Scope, sequence: int) -> list[MessageRow]:
        """All live messages of the atom that holds a sequence, late results included."""
        return await self._connections.read(reads.atom_of, scope, sequence)

    async def late_results(self, scope: Scope, first: int, last: int) -> list[MessageRow]:
        """Live messages that came late for atoms that begin within a range, in order."""
        return await self._connections.read(reads.late_results, scope, first, last)

    async def mend(self, scope: Scope, bodies: Sequence[tuple[int, bytes, bytes]]) -> int:
        """Puts bodies of these hashes in the place of damaged ones."""
        return await self._write(lambda db: writes.mend(db, scope, bodies))

    async def mend_summaries(self, scope: Scope, rows: Sequence[SummaryRow]) -> int:
        """Puts text and children in the place of damaged ones."""
        return await self._write(lambda db: writes.mend_summaries(db, scope, rows))

    async def summaries(
        self, scope: Scope, *, as_of: int | None = None, retired: bool = False
    ) -> list[SummaryRow]:
        """By first sequence, then depth: those live now, or as of a revision, or all."""
        return await self._connections.read(reads.summaries, scope, as_of, retired)

    async def size(self, scope: Scope) -> int:
        """Bytes of a session's own rows."""
        return await self._connections.read(reads.size, scope)

    # Answers

    async def reply(self, scope: Scope, request_id: str) -> StoredReply | None:
        """What a request id was answered with."""
        return await self._connections.read(reads.reply, scope, request_id)

    async def remember(self, scope: Scope, reply: StoredReply) -> None:
        """Keeps an answer outside a commit; the first one under an id stays."""
        names = named(scope, **dict(zip(REPLY, reply_values(reply), strict=True)))
        await self._write(lambda db: db.met(REMEMBER, names))

    async def stray_replies(self, scope: Scope, newest: int, *, erase: bool = False) -> int:
        """How many answers are kept for revisions above `newest`; with `erase` they are erased."""
        if erase:
            names = named(scope, newest=newest)
            return await self._write(lambda db: db.met(SQL.replies.erase_stray, names))
        return await self._connections.read(reads.stray_replies, scope, newest)
