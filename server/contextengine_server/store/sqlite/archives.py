"""Which sessions are in the archive, in the SQLite store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from contextengine_server.store.archives import ArchivedObject, ArchiveTotals, moved
from contextengine_server.store.errors import RevisionConflict, StoreError
from contextengine_server.store.rows import Commit, MessageRow, SessionHead, SummaryRow
from contextengine_server.store.sql import columns
from contextengine_server.store.sql.columns import archive_values, named, updated_values

from . import passages, reads, writes
from .disk import purge
from .index import Run, Write
from .statements import SQL


class SqliteArchives:
    """`Archives` in a table. `read` and `write` run work on a connection of their kind; `committed`
    is told of every head that moved."""

    def __init__(self, read: Run, write: Write, committed: Callable[[Commit], None]) -> None:
        self._read, self._write, self._committed = read, write, committed

    async def idle(
        self,
        tenant: str,
        before_ms: int,
        limit: int,
        *,
        after: tuple[int, str, str] | None = None,
    ) -> list[SessionHead]:
        """Heads of the tenant's sessions that may go, those written longest ago first."""
        names = {"tenant": tenant, "before_ms": before_ms, "limit": limit}
        after_names = dict(
            zip(("after_ms", "after_agent", "after_session"), after or (), strict=False)
        )
        query = SQL.archives.idle(after=after is not None)
        return await self._read(
            lambda db: columns.heads(db.execute(query, {**names, **after_names}))
        )

    async def reserve(self, row: ArchivedObject) -> None:
        """Makes an object known before it is written."""
        values = archive_values(row)
        await self._write(
            lambda db: db.execute(SQL.archives.reserve, values), tenant=row.scope.tenant
        )

    async def move(self, before: SessionHead, row: ArchivedObject) -> SessionHead:
        """Takes the rows of a session out of the store."""
        after = moved(before, row.name)

        def work(db: sqlite3.Connection) -> None:
            names = named(before.scope, name=row.name)
            [owed] = db.execute(SQL.archives.owed, names).fetchone()
            if owed or not db.execute(SQL.archives.hold, names).rowcount:
                raise RevisionConflict(before.scope, before.revision, before.revision)
            _advance(db, before, after)
            went = tuple(
                db.execute(statement, names).rowcount
                for statement in (SQL.heads.delete_messages, SQL.heads.delete_summaries)
            )
            if went != (row.messages, row.summaries):
                raise StoreError(f"{before.scope.session}: {row.name} does not hold all of it")
            passages.renew(db, before.scope)
            purge.ask(db)

        await self._write(
            work,
            lambda _: self._committed(Commit(after, before.revision)),
            tenant=before.scope.tenant,
        )
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

        def work(db: sqlite3.Connection) -> None:
            _advance(db, before, after)
            writes.put_rows(db, change)
            passages.renew(db, before.scope)
            names = named(before.scope, name=before.archived, now=now_ms)
            db.execute(SQL.archives.free, names)

        await self._write(
            work,
            lambda _: self._committed(change),
            tenant=before.scope.tenant,
        )
        return after

    async def object_of(self, head: SessionHead) -> ArchivedObject | None:
        """The object that an archived session is in."""
        names = named(head.scope, name=head.archived, incarnation=head.incarnation)
        found = await self._read(lambda db: columns.archives(db.execute(SQL.archives.one, names)))
        return found[0] if found else None

    async def release(self, tenant: str, *, stale_ms: int, kept_ms: int) -> list[ArchivedObject]:
        """Dooms what is needed no more, and answers all that is doomed."""
        names = {"tenant": tenant, "stale_ms": stale_ms, "kept_ms": kept_ms}

        def work(db: sqlite3.Connection) -> list[ArchivedObject]:
            for statement in SQL.archives.doom:
                db.execute(statement, names)
            return columns.archives(db.execute(SQL.archives.doomed, names))

        return await self._write(work, tenant=tenant)

    async def erased(self, rows: Sequence[ArchivedObject]) -> None:
        """Forgets doomed objects."""

        def work(db: sqlite3.Connection) -> None:
            for row in rows:
                db.execute(SQL.archives.erase, named(row.scope, name=row.name))

        await self._write(work)

    async def totals(self) -> ArchiveTotals:
        """What the archive holds."""

        def read(db: sqlite3.Connection) -> ArchiveTotals:
            [doomed] = db.execute(SQL.archives.count_doomed).fetchone()
            sessions, size = db.execute(SQL.archives.held).fetchone()
            return ArchiveTotals(sessions, size, doomed)

        return await self._read(read)


def _advance(db: sqlite3.Connection, before: SessionHead, after: SessionHead) -> None:
    """Brings a head from one place to the other."""
    row = updated_values(after) + before.scope
    row += before.incarnation, before.revision, before.commit_id
    if not db.execute(SQL.heads.update, row).rowcount:
        found = reads.head(db, before.scope)
        actual = None if found is None else found.revision
        raise RevisionConflict(before.scope, before.revision, actual)
