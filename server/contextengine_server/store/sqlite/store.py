"""The SQLite store: one process, one writer, a few readers."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from contextengine_server.context.scope import Scope
from contextengine_server.store.commits import check
from contextengine_server.store.errors import StoreRefused, StoreUnavailable
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
    StoreHealth,
    SummaryRow,
)
from contextengine_server.store.search import SearchIndex
from contextengine_server.store.sql.migrations import HEAD

from . import database, passages, reads, writes
from .agents.facts import SqliteAgentFacts
from .agents.ledger import SqliteLedger
from .archives import SqliteArchives
from .chunks import SqliteChunks
from .disk import purge, space
from .disk.checkpoints import Checkpoints
from .guards import SqliteGuards, SqliteQuotas
from .index import SqliteIndex
from .listings import SqliteListings
from .model_leases import SqliteModelLeases
from .readers import Readers
from .replies import SqliteReplies
from .spawns import SqliteSpawns
from .workload import SqliteDebts, SqliteWorkloads
from .writer import Writer

T = TypeVar("T")

_READERS = 3
_ADVICE = "Look at the disk and the path; restore a backup where the file is damaged."

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


_LOG_TRIES = 100
_LOG_PAUSE_S = 0.02
"""How often, and after what pause, the log is emptied until no reader is in the way."""
_PURGE_S = 1.0
"""How long a deletion waits until what it erased is overwritten."""


class _Open:
    """What an open store holds."""

    def __init__(self, path: Path, loop: asyncio.AbstractEventLoop, *, forced: bool) -> None:
        self.lock = database.FileLock(path)
        try:
            database.prepare(path)
            self.lock.hold()
            writing = database.connect_writer(path, forced=forced)
            space.prepare(writing, path)
            writes.take_back_debts(writing)
            self.searchable = passages.prepare(writing)
            self.writer = Writer(writing, loop)
            self.checkpoints = Checkpoints(database.connect(path), self.writer.log_grew)
            reading = [database.connect_reader(path) for _ in range(_READERS)]
            self.readers = Readers(reading, loop)
        except sqlite3.Error as error:
            self.lock.release()
            raise StoreRefused(f"{path} cannot be opened: {error}") from error
        except BaseException:
            self.lock.release()
            raise
        self.checkpoints.start()
        self.writer.start()

    async def close(self) -> None:
        await self.readers.stop()
        await asyncio.to_thread(self.checkpoints.stop)
        # Last: the last connection to leave folds the log into the database.
        await self.writer.stop()
        self.lock.release()


class SqliteStore(SqliteListings, SqliteReplies, SqliteDebts):
    """`Store` in one SQLite file. Use it on one event loop.

    Durable means WAL with synchronous FULL: an acknowledged write survives a power cut. Not
    `forced`, it is NORMAL: the end of the process takes nothing back, a power cut what the system
    had not written yet. Locks on `<path>.lock` and on the file keep other processes out, so heads
    may be answered from memory (`CachedHeads`).
    """

    def __init__(self, path: str | Path, *, forced: bool = True) -> None:
        self._path, self._forced = Path(path).resolve(), forced
        self._open: _Open | None = None
        self._observers: list[Observer] = []
        self._index = SqliteIndex(self._read, self._write, self._alone)
        self.index: SearchIndex = self._index
        self.guards: Guards = SqliteGuards(self._read, self._write)
        self.quotas: TenantRows = SqliteQuotas(self._read, self._write)
        self.model_leases: ModelLeases = SqliteModelLeases(self._read, self._write)
        self.spawns: Spawns = SqliteSpawns(self._read, self._write, self._committed, self._erased)
        self.ledger: SpendLedger = SqliteLedger(self._read)
        self.memory: AgentMemory = SqliteAgentFacts(self._read, self._write)
        self.chunks: Chunks = SqliteChunks(self._read, self._write)
        self.archives: Archives = SqliteArchives(self._read, self._write, self._committed)
        self.feed: Feed = LocalFeed()
        self.leases: Leases = LocalLeases()
        self.workload: Workloads = SqliteWorkloads(self._read, self._queued)

    # Life

    async def open(self) -> None:
        """Opens, locks and migrates the database. Raises StoreRefused."""
        loop = asyncio.get_running_loop()
        self._open = await asyncio.to_thread(_Open, self._path, loop, forced=self._forced)
        self.index.available = self._open.searchable

    async def close(self) -> None:
        """Writes what is queued, then closes. Safe twice."""
        opened, self._open = self._open, None
        if opened is not None:
            await opened.close()

    async def health(self) -> StoreHealth:
        """How the store is: whether it reads, and whether the last write reached the disk."""
        facts = {"path": str(self._path), "schema": HEAD}
        opened = self._open
        if opened is None:
            return StoreHealth(False, "closed", facts, _ADVICE)
        try:
            facts["journal"] = await self._read(database.journal_mode)
            facts["vacuum"] = await self._read(space.vacuum_wanted)
            facts["bytes"] = str(self._path.stat().st_size)
            facts["log_bytes"] = str(self._path.with_name(self._path.name + "-wal").stat().st_size)
            disk = os.statvfs(self._path)
            facts["free_bytes"] = str(disk.f_bavail * disk.f_frsize)
        except (StoreUnavailable, OSError) as error:
            return StoreHealth(False, str(error), facts, _ADVICE)
        failure = opened.writer.failure
        if failure:
            return StoreHealth(False, f"the last write failed: {failure}", facts, _ADVICE)
        return StoreHealth(True, "open", facts)

    def clock_ms(self) -> int:
        """This machine's clock: nobody else has the database open."""
        return time.time_ns() // 1_000_000

    async def probe(self) -> None:
        """Writes a page as it is."""
        await self._write(database.touch)

    async def vacuum(self) -> None:
        """Overwrites what was erased, then writes the file anew without gaps."""
        while await self.index.erase() or await self._index.purge():
            pass
        await self._alone(space.vacuum)
        await self._write(lambda db: purge.done(db, 0, vacuumed=True))
        for _ in range(_LOG_TRIES):
            if await self._alone(space.truncate_log):
                break
            await asyncio.sleep(_LOG_PAUSE_S)

    def observe(self, observer: Observer) -> None:
        """From now on, tells of what was written."""
        self._observers.append(observer)

    def _opened(self) -> _Open:
        if self._open is None:
            raise StoreUnavailable("the store is closed")
        return self._open

    async def _read(self, read: Callable[..., T], *args: object) -> T:
        return await self._opened().readers.run(read, *args)

    def _queued(self) -> int:
        return self._open.writer.queued() if self._open is not None else 0

    async def _write(
        self,
        work: Callable[[sqlite3.Connection], T],
        then: Callable[[T], None] = lambda result: None,
        *,
        tenant: str = "",
    ) -> T:
        return await self._opened().writer.submit(work, then, tenant=tenant)

    async def _alone(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await self._opened().writer.submit(work, lambda result: None, alone=True)

    # Sessions

    async def head(self, scope: Scope) -> SessionHead | None:
        """The session's head, or None where there is no such session."""
        return await self._read(reads.head, scope)

    async def current_session(self, tenant: str, agent: str, session_key: str) -> str | None:
        """The id of the key's current session."""
        return await self._read(reads.current_session, tenant, agent, session_key)

    async def changes(self, scope: Scope, since: int) -> Changes | None:
        """What changed since a revision; None where the session is gone."""
        return await self._read(reads.changes, scope, since)

    def commit(self, commit: Commit) -> Awaitable[None]:
        """Writes one change durably. A caller that is cancelled does not take the change back.

        Raises RevisionConflict, ParentGone, DuplicateHostIds, DuplicateRequest, StoreUnavailable;
        StoreError where the commit contradicts itself or the rows.
        """
        usual = _appends(commit)
        if not usual:
            check(commit)
        return self._opened().writer.submit(
            partial(writes.commit, change=commit),
            partial(self._committed, commit),
            commit if usual else None,
            tenant=commit.head.scope.tenant,
            rows=max(1, len(commit.messages)),
        )

    def _committed(self, commit: Commit, _: object = None) -> None:
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
            self.index.noted(scope)  # there is something to tidy up

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

        def forget(deleted: Deleted) -> None:
            self._erased([scope._replace(session=session) for session in deleted.sessions])

        def delete(db: sqlite3.Connection) -> Deleted:
            deleted = writes.delete(db, scope, expected_revision, cascade)
            if answer is not None:
                writes.remember_of_agent(db, scope, answer(deleted))
            return deleted

        deleted = await self._write(delete, forget, tenant=scope.tenant)
        if overwritten:
            await self._overwritten()
        return deleted

    async def unstage(self, scope: Scope, incarnation: str, above: int = 0) -> None:
        """Erases messages of a staged session above a sequence; above 0 the session as well."""
        work = partial(writes.unstage, scope=scope, incarnation=incarnation, above=above)
        await self._write(work, tenant=scope.tenant)

    async def forget(self, tenant: str, agent: str = "") -> int:
        """Erases what stands beside the sessions of an agent, or of a tenant and all its agents."""
        rows = await self._write(lambda db: writes.forget(db, tenant, agent), tenant=tenant)
        await self._overwritten()
        return rows

    async def _overwritten(self) -> None:
        while await self.index.erase():
            pass  # in pieces, so that nobody else's write waits for all of them
        # A large index is done in the background, so that nobody waits for it.
        with suppress(TimeoutError):
            async with asyncio.timeout(_PURGE_S):
                while await self._index.purge():
                    pass

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
        return await self._read(reads.messages, scope, first, last, as_of, retired)

    async def messages_at(
        self,
        scope: Scope,
        sequences: Sequence[int],
        *,
        as_of: int | None = None,
        retired: bool = False,
    ) -> list[MessageRow]:
        """Those of the session's messages that have these sequences, in order."""
        return await self._read(reads.messages_at, scope, sequences, as_of, retired)

    async def messages_by_host_id(self, scope: Scope, host_ids: Sequence[str]) -> list[MessageRow]:
        """Live messages with these host ids, in order."""
        return await self._read(reads.messages_by_host_id, scope, host_ids)

    async def atom_from(self, scope: Scope, start: int) -> MessageRow | None:
        """The first live message that begins an atom with at least this running sum before it."""
        return await self._read(reads.atom_from, scope, start)

    async def pinned_atoms(self, scope: Scope, before: int) -> list[list[MessageRow]]:
        """For every live atom that begins before a sequence and holds a pinned message: all its
        live messages, late results included."""
        return await self._read(reads.pinned_atoms, scope, before)

    async def atom_of(self, scope: Scope, sequence: int) -> list[MessageRow]:
        """All live messages of the atom that holds a sequence, late results included."""
        return await self._read(reads.atom_of, scope, sequence)

    async def late_results(self, scope: Scope, first: int, last: int) -> list[MessageRow]:
        """Live messages that came late for atoms that begin within a range, in order."""
        return await self._read(reads.late_results, scope, first, last)

    async def mend(self, scope: Scope, bodies: Sequence[tuple[int, bytes, bytes]]) -> int:
        """Puts bodies of these hashes in the place of damaged ones."""
        return await self._write(lambda db: writes.mend(db, scope, bodies), tenant=scope.tenant)

    async def mend_summaries(self, scope: Scope, rows: Sequence[SummaryRow]) -> int:
        """Puts text and children in the place of damaged ones."""
        return await self._write(
            lambda db: writes.mend_summaries(db, scope, rows), tenant=scope.tenant
        )

    async def summaries(
        self, scope: Scope, *, as_of: int | None = None, retired: bool = False
    ) -> list[SummaryRow]:
        """By first sequence, then depth: those live now, or as of a revision, or all."""
        return await self._read(reads.summaries, scope, as_of, retired)
