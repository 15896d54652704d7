"""A store whose sessions may be in the archive: they come back at the first touch."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog

from contextengine_server.context.scope import Scope
from contextengine_server.errors import StoreDown
from contextengine_server.store.protocols import Answering, Store
from contextengine_server.store.rows import Changes, Deleted, MessageRow, SessionHead, SummaryRow

from .cold_room import RETRY_MS, ColdRoom
from .objects import ObjectsUnavailable

T = TypeVar("T", list[MessageRow], list[list[MessageRow]], list[SummaryRow], MessageRow | None, int)

log = structlog.get_logger("contextengine.archive")


class ArchivedStore:
    """`Store` over another and its archive.

    Rows leave and come back all at once, so a read that finds any row found all there are. One that
    finds none looks at the head, and reads again once the session is back. Heads and lists are
    answered as they are, archived sessions among them; what writes meets the name that the session
    has in the archive, and nobody can change what he did not read.

    Everything else is the wrapped store's own: its methods are taken over as they are.
    """

    def __init__(self, store: Store, room: ColdRoom) -> None:
        self._store, self._room = store, room

        self.open = store.open
        self.close = store.close
        self.health = store.health
        self.clock_ms = store.clock_ms
        self.probe = store.probe
        self.vacuum = store.vacuum
        self.observe = store.observe
        self.head = store.head
        self.current_session = store.current_session
        self.commit = store.commit
        self.unstage = store.unstage
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

    async def restored(self, head: SessionHead) -> SessionHead | None:
        """The head once the session's rows are here; None where it is gone. Raises StoreDown and
        CorruptRow, where they do not come."""
        now: SessionHead | None = head
        while now is not None and now.archived:
            now = await self._room.bring_back(now)
        return now

    async def _found(self, scope: Scope, read: Callable[[], Awaitable[T]]) -> T:
        while True:
            found = await read()
            if found:
                return found
            head = await self._store.head(scope)
            if head is None or not head.archived:
                return found
            await self.restored(head)

    # Reads of rows

    async def changes(self, scope: Scope, since: int) -> Changes | None:
        """What changed since a revision; None where the session is gone."""
        while True:
            found = await self._store.changes(scope, since)
            if found is None or not found.head.archived:
                return found
            await self.restored(found.head)

    async def messages(
        self,
        scope: Scope,
        first: int = 1,
        last: int | None = None,
        *,
        as_of: int | None = None,
        retired: bool = False,
    ) -> list[MessageRow]:
        """Those in a range of sequences."""
        return await self._found(
            scope,
            lambda: self._store.messages(scope, first, last, as_of=as_of, retired=retired),
        )

    async def messages_at(
        self,
        scope: Scope,
        sequences: Sequence[int],
        *,
        as_of: int | None = None,
        retired: bool = False,
    ) -> list[MessageRow]:
        """Those that have these sequences."""
        return await self._found(
            scope,
            lambda: self._store.messages_at(scope, sequences, as_of=as_of, retired=retired),
        )

    async def messages_by_host_id(self, scope: Scope, host_ids: Sequence[str]) -> list[MessageRow]:
        """Live messages with these host ids."""
        return await self._found(scope, lambda: self._store.messages_by_host_id(scope, host_ids))

    async def atom_from(self, scope: Scope, start: int) -> MessageRow | None:
        """The first live message that begins an atom with at least this running sum before it."""
        return await self._found(scope, lambda: self._store.atom_from(scope, start))

    async def atom_of(self, scope: Scope, sequence: int) -> list[MessageRow]:
        """All live messages of the atom that shows a sequence."""
        return await self._found(scope, lambda: self._store.atom_of(scope, sequence))

    async def pinned_atoms(self, scope: Scope, before: int) -> list[list[MessageRow]]:
        """Every live atom before a sequence that holds a pinned message."""
        return await self._found(scope, lambda: self._store.pinned_atoms(scope, before))

    async def late_results(self, scope: Scope, first: int, last: int) -> list[MessageRow]:
        """Live messages that came late for atoms of a range."""
        return await self._found(scope, lambda: self._store.late_results(scope, first, last))

    async def summaries(
        self, scope: Scope, *, as_of: int | None = None, retired: bool = False
    ) -> list[SummaryRow]:
        """Its summaries."""
        return await self._found(
            scope, lambda: self._store.summaries(scope, as_of=as_of, retired=retired)
        )

    # Writes of rows that stand outside commits

    async def mend(self, scope: Scope, bodies: Sequence[tuple[int, bytes, bytes]]) -> int:
        """Puts bodies in the place of damaged ones."""
        return await self._found(scope, lambda: self._store.mend(scope, bodies))

    async def mend_summaries(self, scope: Scope, rows: Sequence[SummaryRow]) -> int:
        """Puts text and children in the place of damaged ones."""
        return await self._found(scope, lambda: self._store.mend_summaries(scope, rows))

    # Erasure, which goes as far as the archive

    async def delete(
        self,
        scope: Scope,
        *,
        expected_revision: int | None,
        cascade: bool,
        answer: Answering = None,
        overwritten: bool = True,
    ) -> Deleted:
        """Erases a session with everything derived from it, and then the objects; where the archive
        cannot be reached, these are erased as soon as it can."""
        head = await self._store.head(scope)
        elsewhere = cascade or (head is not None and bool(head.archived))
        deleted = await self._store.delete(
            scope,
            expected_revision=expected_revision,
            cascade=cascade,
            answer=answer,
            overwritten=overwritten,
        )
        try:
            if elsewhere:
                await self._room.clean(scope.tenant)
        except ObjectsUnavailable as error:
            log.warning("objects_left", tenant=scope.tenant, detail=str(error))
        return deleted

    async def forget(self, tenant: str, agent: str = "") -> int:
        """Erases what stands beside the sessions of an agent or a tenant, which is no erasure as
        long as objects are left. Raises StoreDown."""
        rows = await self._store.forget(tenant, agent)
        try:
            await self._room.clean(tenant)
        except ObjectsUnavailable as error:
            log.error("objects_left", tenant=tenant, detail=str(error))
            raise StoreDown(
                "all rows are erased, and objects in the archive are not, since it cannot be"
                " reached now. Send the call again, which goes on; the server tries it as well",
                retry_after_ms=RETRY_MS,
            ) from error
        return rows
