"""Which sessions are in the archive, in the memory store."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.archives import ArchivedObject, ArchiveTotals, Stage, moved
from contextengine_server.store.errors import RevisionConflict, StoreError
from contextengine_server.store.rows import Commit, MessageRow, SessionHead, SummaryRow

from .tables import SessionTables, Tables


class MemoryArchives:
    """`Archives` over dictionaries. `committed` is told of every head that moved."""

    def __init__(self, tables: Callable[[], Tables], committed: Callable[[Commit], None]) -> None:
        self._tables, self._committed = tables, committed

    async def idle(
        self,
        tenant: str,
        before_ms: int,
        limit: int,
        *,
        after: tuple[int, str, str] | None = None,
    ) -> list[SessionHead]:
        """Heads of the tenant's sessions that may go, those written longest ago first."""
        tables = self._tables()
        stay = {debt.scope for debt in tables.debts.values() if not debt.held}
        stay |= {row.scope for row in tables.archives.values() if row.freed_ms >= before_ms}

        def place(head: SessionHead) -> tuple[int, str, str]:
            return head.updated_ms, head.scope.agent, head.scope.session

        found = [
            session.head
            for scope, session in tables.sessions.items()
            if scope.tenant == tenant
            and session.head.updated_ms < before_ms
            and not session.head.archived
            and session.head.last_sequence > session.head.parent_sequence
            and scope not in stay
            and (after is None or place(session.head) > after)
        ]
        return sorted(found, key=place)[:limit]

    async def reserve(self, row: ArchivedObject) -> None:
        """Makes an object known before it is written."""
        self._tables().archives[row.scope, row.name] = row

    async def move(self, before: SessionHead, row: ArchivedObject) -> SessionHead:
        """Takes the rows of a session out of the store."""
        tables, scope = self._tables(), before.scope
        session = self._at(tables, before)
        known = tables.archives.get((scope, row.name))
        owed = any(debt.scope == scope and not debt.held for debt in tables.debts.values())
        if owed or known is None or known.stage != Stage.RESERVED:
            raise RevisionConflict(scope, before.revision, before.revision)
        if (len(session.messages), len(session.summaries)) != (row.messages, row.summaries):
            raise StoreError(f"{scope.session}: {row.name} does not hold all of it")
        after = moved(before, row.name)
        tables.archives[scope, row.name] = replace(known, stage=Stage.HELD)
        tables.sessions[scope] = SessionTables(after)
        tables.passages.drop(scope)
        self._committed(Commit(after, before.revision))
        return after

    async def put_back(
        self,
        before: SessionHead,
        messages: Sequence[MessageRow],
        summaries: Sequence[SummaryRow],
        now_ms: int,
    ) -> SessionHead:
        """Puts the rows of an archived session back."""
        tables, scope = self._tables(), before.scope
        self._at(tables, before)
        after = moved(before, "")
        tables.sessions[scope] = session = SessionTables(after)
        for row in messages:
            session.put(row)
        session.summaries.update((row.id, row) for row in summaries)
        tables.passages.drop(scope)
        known = tables.archives.get((scope, before.archived))
        if known is not None:
            tables.archives[scope, before.archived] = replace(
                known, stage=Stage.FREED, freed_ms=now_ms
            )
        self._committed(Commit(after, before.revision, messages, summaries=summaries))
        return after

    async def object_of(self, head: SessionHead) -> ArchivedObject | None:
        """The object that an archived session is in."""
        row = self._tables().archives.get((head.scope, head.archived))
        return row if row is not None and row.incarnation == head.incarnation else None

    async def release(self, tenant: str, *, stale_ms: int, kept_ms: int) -> list[ArchivedObject]:
        """Dooms what is needed no more, and answers all that is doomed."""
        tables = self._tables()

        def needed(row: ArchivedObject) -> bool:
            if row.stage == Stage.RESERVED:
                return row.created_ms >= stale_ms
            return row.stage == Stage.HELD or (row.stage == Stage.FREED and row.freed_ms >= kept_ms)

        doomed = []
        for key, row in sorted(tables.archives.items()):
            if tenant in ("", row.scope.tenant) and not needed(row):
                tables.archives[key] = replace(row, stage=Stage.DOOMED)
                doomed.append(tables.archives[key])
        return doomed

    async def erased(self, rows: Sequence[ArchivedObject]) -> None:
        """Forgets doomed objects."""
        archives = self._tables().archives
        for row in rows:
            known = archives.get((row.scope, row.name))
            if known is not None and known.stage == Stage.DOOMED:
                del archives[row.scope, row.name]

    async def totals(self) -> ArchiveTotals:
        """What the archive holds."""
        rows = self._tables().archives.values()
        held = [row.size for row in rows if row.stage == Stage.HELD]
        doomed = sum(row.stage == Stage.DOOMED for row in rows)
        return ArchiveTotals(len(held), sum(held), doomed)

    def _at(self, tables: Tables, before: SessionHead) -> SessionTables:
        """The session, where it is still at this head. Raises RevisionConflict."""
        scope: Scope = before.scope
        session = tables.sessions.get(scope)
        if session is None or not session.head.same_as(before):
            actual = None if session is None else session.head.revision
            raise RevisionConflict(scope, before.revision, actual)
        return session
