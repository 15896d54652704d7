"""The store in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from contextengine_server.context.scope import Scope
from contextengine_server.store.commits import check
from contextengine_server.store.local import LocalFeed, LocalLeases
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
    SearchIndex,
    Spawns,
    SpendLedger,
    TenantRows,
    Workloads,
)
from contextengine_server.store.rows import Commit, Deleted

from . import commits
from .agent_facts import MemoryAgentFacts
from .archives import MemoryArchives
from .chunks import MemoryChunks
from .debts import MemoryDebts
from .index import MemoryIndex
from .ledger import MemoryLedger
from .reads import MemoryReads
from .spawns import MemorySpawns
from .tables import SessionTables, Tables
from .work import MemoryGuards, MemoryModelLeases, MemoryQuotas, MemoryWorkloads


class MemoryStore(MemoryReads, MemoryDebts):
    """`Store` over dictionaries. Nothing survives the process.

    Two stores over the same `Tables` are two servers over one database. Every method does its work
    without giving up the event loop, so no two overlap; a commit gives it up once it is written.
    """

    def __init__(self, tables: Tables | None = None) -> None:
        super().__init__(tables if tables is not None else Tables())
        self._observers: list[Observer] = []
        self.index: SearchIndex = MemoryIndex(self._tables)
        self.guards: Guards = MemoryGuards(self._tables)
        self.quotas: TenantRows = MemoryQuotas(self._tables)
        self.model_leases: ModelLeases = MemoryModelLeases(self._tables)
        self.spawns: Spawns = MemorySpawns(self._tables, self._committed, self._erased)
        self.ledger: SpendLedger = MemoryLedger(self._tables)
        self.memory: AgentMemory = MemoryAgentFacts(self._tables)
        self.chunks: Chunks = MemoryChunks(self._tables)
        self.archives: Archives = MemoryArchives(self._tables, self._committed)
        self.workload: Workloads = MemoryWorkloads(self._tables)
        self.feed: Feed = LocalFeed(self._rows.feed)
        self.leases: Leases = LocalLeases(self._rows.leases)

    async def commit(self, commit: Commit) -> None:
        """Writes one change. Raises RevisionConflict, DuplicateHostIds, DuplicateRequest,
        StoreUnavailable; StoreError where the commit contradicts itself or the rows."""
        check(commit)
        commits.commit(self._tables(), commit)
        self._committed(commit)
        await asyncio.sleep(0)  # others may have waited for their turn

    async def delete(
        self,
        scope: Scope,
        *,
        expected_revision: int | None,
        cascade: bool,
        answer: Answering = None,
        overwritten: bool = True,
    ) -> Deleted:
        """Erases a session with everything derived from it. Raises HasDependents,
        RevisionConflict."""
        tables = self._tables()
        deleted = commits.delete(tables, scope, expected_revision, cascade=cascade)
        if answer is not None:
            reply = answer(deleted)
            of_agent = tables.replies.setdefault(scope._replace(session=""), {})
            of_agent.setdefault(reply.request_id, (reply, 0))
        self._erased([scope._replace(session=session) for session in deleted.sessions])
        return deleted

    async def unstage(self, scope: Scope, incarnation: str, above: int = 0) -> None:
        """Erases messages of a staged session above a sequence; above 0 the session as well."""
        tables = self._tables()
        session = tables.staged.get(scope)
        if session is not None and session.head.incarnation == incarnation:
            tables.staged[scope] = kept = SessionTables(session.head)
            for row in session.between(0, above):
                kept.put(row)
            if not above:
                del tables.staged[scope]

    async def forget(self, tenant: str, agent: str = "") -> int:
        """Erases what stands beside the sessions of an agent, or of a tenant and all its agents."""
        return self._tables().forget(tenant, agent)

    def observe(self, observer: Observer) -> None:
        """From now on, tells of what was written."""
        self._observers.append(observer)

    def _committed(self, commit: Commit) -> None:
        if not commit.head.revision:
            return  # staged: nobody sees it
        for observer in self._observers:
            observer.committed(commit)
        if commit.messages or commit.summaries or commit.adopts:
            self.index.noted(commit.head.scope)

    def _erased(self, scopes: Sequence[Scope]) -> None:
        for observer in self._observers:
            observer.erased(scopes)
        for scope in scopes:
            self.index.noted(scope)
