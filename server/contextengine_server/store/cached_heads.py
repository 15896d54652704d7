"""Heads and keys answered from memory, for a store whose database nobody else writes."""

from __future__ import annotations

from collections.abc import Awaitable, Hashable, Sequence
from typing import Generic, TypeVar

from cachetools import LRUCache

from contextengine_server.context.scope import Scope
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Commit, SessionHead

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

LEAST_HEADS = 20_000
"""Heads and keys kept in memory, each: some tens of MB where their state is a KB."""


class CachedHeads:
    """A store that reads a session's head, and a key's current session, once.

    The wrapped store tells of each commit and deletion once it is durable, and the memory follows.
    So no other process may write the same database while this is in use.

    Everything else is the wrapped store's own: its methods are taken over as they are, and a call
    of one costs what it costs there.
    """

    def __init__(self, store: Store, capacity: int = LEAST_HEADS) -> None:
        self._store = store
        self._heads: Remembered[Scope, SessionHead] = Remembered(capacity)
        self._keys: Remembered[tuple[str, str, str], str] = Remembered(capacity)
        store.observe(self)

        self.open = store.open
        self.health = store.health
        self.clock_ms = store.clock_ms
        self.probe = store.probe
        self.vacuum = store.vacuum
        self.observe = store.observe
        self.changes = store.changes
        self.commit = store.commit
        self.delete = store.delete
        self.unstage = store.unstage
        self.forget = store.forget
        self.messages = store.messages
        self.messages_at = store.messages_at
        self.messages_by_host_id = store.messages_by_host_id
        self.atom_from = store.atom_from
        self.atom_of = store.atom_of
        self.pinned_atoms = store.pinned_atoms
        self.late_results = store.late_results
        self.mend = store.mend
        self.mend_summaries = store.mend_summaries
        self.summaries = store.summaries
        self.reply = store.reply
        self.size = store.size
        self.remember = store.remember
        self.stray_replies = store.stray_replies
        self.list_sessions = store.list_sessions
        self.agent_sessions = store.agent_sessions
        self.idle_sessions = store.idle_sessions
        self.staged = store.staged
        self.tenants = store.tenants
        self.dependents = store.dependents
        self.counts = store.counts
        self.add_debt = store.add_debt
        self.debts = store.debts
        self.debtors = store.debtors
        self.claim_debt = store.claim_debt
        self.extend_debt = store.extend_debt
        self.release_debt = store.release_debt
        self.assignments = store.assignments
        self.assign = store.assign
        self.index = store.index
        self.guards = store.guards
        self.quotas = store.quotas
        self.model_leases = store.model_leases
        self.spawns = store.spawns
        self.ledger = store.ledger
        self.memory = store.memory
        self.chunks = store.chunks
        self.archives = store.archives
        self.workload = store.workload
        self.feed = store.feed
        self.leases = store.leases

    async def close(self) -> None:
        """Closes the wrapped store and forgets what it said. Safe twice."""
        await self._store.close()
        self._heads.clear()
        self._keys.clear()

    async def head(self, scope: Scope) -> SessionHead | None:
        """The session's head, or None where there is no such session."""
        known = self._heads.get(scope)
        if known is not None:
            return known
        return await self._heads.read(scope, self._store.head(scope))

    async def current_session(self, tenant: str, agent: str, session_key: str) -> str | None:
        """The id of the key's current session."""
        key = (tenant, agent, session_key)
        known = self._keys.get(key)
        if known is not None:
            return known
        return await self._keys.read(key, self._store.current_session(*key))

    def committed(self, commit: Commit) -> None:
        """Memory follows a commit."""
        head = commit.head
        self._heads.put(head.scope, head)
        if commit.bind_key:
            scope = head.scope
            self._keys.put((scope.tenant, scope.agent, head.session_key), scope.session)

    def erased(self, scopes: Sequence[Scope]) -> None:
        """Memory follows a deletion."""
        for scope in scopes:
            self._heads.drop(scope)
        self._keys.clear()  # seldom, and which keys pointed there is not known here


class Remembered(Generic[K, V]):
    """The most recently used values by key, on one event loop.

    Values come from commits, after they are durable, and else from reads. A read that began before
    a commit must not bring the older value back after it, so a change of a key voids the reads of
    it that are under way.
    """

    def __init__(self, capacity: int) -> None:
        self._values: LRUCache[K, V] = LRUCache(capacity)
        self._reading: dict[K, object] = {}

    def __len__(self) -> int:
        return len(self._values)

    def put(self, key: K, value: V) -> None:
        """What a commit made of it, or a read that no commit has overtaken."""
        self._reading.pop(key, None)
        self._values[key] = value

    def drop(self, key: K) -> None:
        """It is gone, or no longer known."""
        self._reading.pop(key, None)
        self._values.pop(key, None)

    def clear(self) -> None:
        """Nothing is known any more."""
        self._reading.clear()
        self._values.clear()

    def get(self, key: K) -> V | None:
        """The value, where it is in memory."""
        return self._values.get(key)

    async def read(self, key: K, reading: Awaitable[V | None]) -> V | None:
        """The value that is being read, which is kept unless the key is changed meanwhile. What is
        not there at all is asked for again each time."""
        mark = object()
        self._reading[key] = mark
        try:
            value = await reading
        finally:
            current = self._reading.get(key) is mark
            if current:
                del self._reading[key]
        if value is not None and current:
            self.put(key, value)
        return value
