"""Which sessions are in the archive, in the PostgreSQL store."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from contextengine_server.store.archives import ArchivedObject, ArchiveTotals, moved
from contextengine_server.store.errors import RevisionConflict, StoreError
from contextengine_server.store.rows import Commit, MessageRow, SessionHead, SummaryRow
from contextengine_server.store.sql import columns
from contextengine_server.store.sql.columns import archive_values, updated_values

from . import reads, writes
from .connections import Connections, Db
from .keys import home, life, named
from .statements import DELETE_INDEX, SQL, UPDATE_HEAD
from .transactions import Transact

_AT_ONCE = 1_000
"""Messages that one statement puts back."""


class PostgresArchives:
    """`Archives` in a table. `write` runs work in a transaction; `committed` is told of every head
    that moved."""

    def __init__(
        self, connections: Connections, write: Transact, committed: Callable[[Commit], None]
    ) -> None:
        self._connections, self._write, self._committed = connections, write, committed

    async def idle(
        self,
        tenant: str,
        before_ms: int,
        limit: int,
        *,
        after: tuple[int, str, str] | None = None,
    ) -> list[SessionHead]:
        """Heads of the tenant's sessions that may go, those written longest ago first."""
        names: dict[str, object] = {"tenant": tenant, "before_ms": before_ms, "limit": limit}
        if after is not None:
            names["after_ms"], names["after_agent"], names["after_session"] = after
        query = SQL.archives.idle(after=after is not None)
        return columns.heads(await self._connections.read(Db.rows, query, names))

    async def reserve(self, row: ArchivedObject) -> None:
        """Makes an object known before it is written."""
        values = archive_values(row)
        await self._write(lambda db: db.met(SQL.archives.reserve, values))

    async def move(self, before: SessionHead, row: ArchivedObject) -> SessionHead:
        """Takes the rows of a session out of the store."""
        after, scope = moved(before, row.name), before.scope
        names = named(scope, name=row.name)

        async def work(db: Db) -> None:
            await _advance(db, before, after)
            if await db.value(SQL.archives.owed, names):
                raise RevisionConflict(scope, before.revision, before.revision)
            if not await db.met(SQL.archives.hold, names):
                raise RevisionConflict(scope, before.revision, before.revision)
            for statement in DELETE_INDEX:
                await db.met(statement, names)
            messages = await db.met(SQL.heads.delete_messages, names)
            summaries = await db.met(SQL.heads.delete_summaries, names)
            if (messages, summaries) != (row.messages, row.summaries):
                raise StoreError(f"{scope.session}: {row.name} does not hold all of it")

        await self._write(work, lambda _: self._committed(Commit(after, before.revision)))
        return after

    async def put_back(
        self,
        before: SessionHead,
        messages: Sequence[MessageRow],
        summaries: Sequence[SummaryRow],
        now_ms: int,
    ) -> SessionHead:
        """Puts the rows of an archived session back."""
        after = moved(before, "")
        change = Commit(after, before.revision, messages, summaries=summaries)
        names = named(before.scope, name=before.archived, now=now_ms)

        async def work(db: Db) -> None:
            await _advance(db, before, after)
            for at in range(0, len(messages), _AT_ONCE):
                some = messages[at : at + _AT_ONCE]
                await writes.put_rows(db, Commit(after, before.revision, some))
            await writes.put_rows(db, Commit(after, before.revision, summaries=summaries))
            for statement in DELETE_INDEX:
                await db.met(statement, names)
            await db.met(SQL.archives.free, names)

        await self._write(work, lambda _: self._committed(change))
        return after

    async def object_of(self, head: SessionHead) -> ArchivedObject | None:
        """The object that an archived session is in."""
        names = named(head.scope, name=head.archived, incarnation=head.incarnation)
        rows = await self._connections.read(Db.rows, SQL.archives.one, names)
        found = columns.archives(rows)
        return found[0] if found else None

    async def release(self, tenant: str, *, stale_ms: int, kept_ms: int) -> list[ArchivedObject]:
        """Dooms what is needed no more, and answers all that is doomed."""
        names = {"tenant": tenant, "stale_ms": stale_ms, "kept_ms": kept_ms}

        async def work(db: Db) -> list[ArchivedObject]:
            for statement in SQL.archives.doom:
                await db.met(statement, names)
            return columns.archives(await db.rows(SQL.archives.doomed, names))

        return await self._write(work)

    async def erased(self, rows: Sequence[ArchivedObject]) -> None:
        """Forgets doomed objects."""

        async def work(db: Db) -> None:
            for row in rows:
                await db.met(SQL.archives.erase, named(row.scope, name=row.name))

        await self._write(work)

    async def totals(self) -> ArchiveTotals:
        """What the archive holds."""

        async def read(db: Db) -> ArchiveTotals:
            async with reads.snapshot(db):
                held = await db.row(SQL.archives.held)
                doomed = await db.value(SQL.archives.count_doomed)
            assert held is not None
            return ArchiveTotals(int(held[0]), int(held[1]), doomed)

        return await self._connections.read(read)


async def _advance(db: Db, before: SessionHead, after: SessionHead) -> None:
    """Brings a head from one place to the other; nobody else writes to the session from then on."""
    key = home(before.scope), life(before.scope, before.incarnation)
    row = (*updated_values(after), *key, before.revision, before.commit_id)
    if not await db.met(UPDATE_HEAD, row):
        raise await writes.conflict(db, Commit(after, before.revision))
