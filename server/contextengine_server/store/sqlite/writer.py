"""One thread that writes for everyone: whatever is queued goes into one transaction, so that many
share one fsync. Where more is queued than goes into one, tenants come by turns."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, groupby, repeat
from operator import attrgetter
from typing import Any, TypeVar

import structlog

from contextengine_server.fairness.presence import PRESENT_S
from contextengine_server.fairness.turns import FairQueue
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.rows import COMMIT_ID, Commit
from contextengine_server.store.sql.columns import (
    message_values,
    updated_values,
)

from .statements import (
    AskedBack,
    StoreConnection,
    insert_messages,
    of_database,
    update_heads,
    was_asked_back,
)

log = structlog.get_logger("contextengine.store")

T = TypeVar("T")

_GROUP = 256
"""Writes in one transaction, at most: the first of them waits for the last."""
_GROUP_ROWS = 256
"""Messages in one transaction beyond which no further write goes into it where others wait."""
_LONG_ROWS = 32
"""Messages of one write beyond which those of other tenants do not go into one transaction with it:
they would wait for it, and to make them durable by themselves takes no longer."""
_CROWDED = 0.8
"""From this share of a processor on that the event loop takes over `_LOOKED_AT_S` it has no time to
lose: what a group costs beside its writes, it costs the loop."""
_LOOKED_AT_S = 0.05
_GATHER_S = 0.005
"""How long after the last group the next one begins where the loop is that crowded and nobody comes
who had nothing in the last."""
LOG_ROWS = 1_000
"""Rows that bring the log about as many pages: so much is copied into the file at a time, and what
the disk is busy with then, commits wait for. Beside batches of 200 messages a quiet tenant's step
took 13.6 ms (p99) with 500, and 15.9 with 2,000; an Ingest some 5 % more of the processor."""


@dataclass(slots=True, eq=False)
class _Job:
    """One write and who waits for it."""

    work: Callable[[sqlite3.Connection], Any]
    then: Callable[[Any], None]
    future: asyncio.Future[Any]
    append: Commit | None = None
    """Set where the work is this usual commit, which can be written together with others."""
    tenant: str = ""
    rows: int = 1
    """What it costs, in messages."""
    alone: bool = False
    """True where the work cannot be done within a transaction."""
    result: Any = None
    error: Exception | None = None


_SERVER = {""}
_ALONE, _ROWS, _TENANT = map(attrgetter, ("alone", "rows", "tenant"))


class Writer:
    """Owns the connection that writes. Work is submitted and answered on the event loop and done in
    the thread."""

    def __init__(self, db: StoreConnection, loop: asyncio.AbstractEventLoop) -> None:
        self._db = db
        self._loop = loop
        self.log_grew = threading.Event()
        """Set whenever LOG_ROWS more rows were changed."""
        self._told = 0
        """How many were when it was set last."""
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._waiting: FairQueue[_Job] = FairQueue(forgets=False)
        """What was queued and did not go into one group: tenants come by turns then."""
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._tenants: set[str] = set()
        """Who wrote last."""
        self._several_until = 0.0
        """Until when several tenants are thought to write."""
        self._lately: set[str] = set()
        """Whose writes were in the last group."""
        self._another = threading.Event()
        """Set where somebody else's write is queued."""
        self._crowded = False
        self._looked = time.monotonic(), 0.0
        """When the loop was last looked at, and the processor time that it had taken by then."""
        self._interruptible: _Job | None = None
        """The long write that is begun, as long as it may still be taken back."""
        self.failure = ""
        """Why the last group could not be written; empty once one was."""

    def start(self) -> None:
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def queued(self) -> int:
        """How many writes wait."""
        return self._queue.qsize() + len(self._waiting)

    def submit(
        self,
        work: Callable[[sqlite3.Connection], T],
        then: Callable[[T], None],
        append: Commit | None = None,
        *,
        tenant: str = "",
        rows: int = 1,
        alone: bool = False,
    ) -> asyncio.Future[T]:
        """Queues a write of so many messages behind those of its tenant (empty: the server itself).
        `then` runs on the loop after it is durable, whether or not anyone still waits for the
        future.

        `append`: the commit that `work` writes, where it is a usual one: a head brought on, and
        messages. `alone`: outside any transaction, with nothing else."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.put(_Job(work, then, future, append, tenant, rows, alone))
        if self._crowded and tenant not in self._lately:
            self._another.set()
        long = self._interruptible
        if long is not None and tenant not in ("", long.tenant) and rows <= _LONG_ROWS:
            self._interruptible = None  # once: it is not put off again
            self._db.ask_back()
        return future

    async def stop(self) -> None:
        """Writes what is queued, then ends the thread and closes the connection."""
        self._queue.put(None)
        self._another.set()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        going, more, waiting, began = True, False, self._waiting, 0.0
        while going or more:
            jobs: list[_Job] = []
            with suppress(queue.Empty):
                job = self._queue.get(block=not more)
                if self._crowded and not more:
                    self._another.wait(max(0.0, began + _GATHER_S - time.monotonic()))
                    self._another.clear()
                while job is not None:
                    jobs.append(job)
                    job = self._queue.get_nowait()
                going = False
            began, whose = time.monotonic(), set(map(_TENANT, jobs))
            if tenants := whose - _SERVER:
                if len(tenants | self._tenants) > 1:
                    self._several_until = began + PRESENT_S
                self._tenants = tenants
            several = began < self._several_until
            if more or len(jobs) > _GROUP or (several and _too_long(jobs)):
                for one in jobs:
                    waiting.push(one.tenant, one, one.rows)
                jobs = _turns(waiting)
                more, whose = len(waiting) > 0, set(map(_TENANT, jobs))
            self._lately = whose
            for alone, some in groupby(jobs, key=_ALONE):
                group = list(some)
                if alone:
                    self._do(group)
                elif len(group) == 1 and group[0].rows > _LONG_ROWS:
                    self._write_long(group[0])
                    more = len(waiting) > 0
                elif self._transact(group, guarded=False) is not None:
                    self._write_apart(group)
            # The loop may be closed by now: then nobody waits for an answer.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._answer, jobs)
            if self._db.total_changes - self._told >= LOG_ROWS:
                self._told = self._db.total_changes
                self.log_grew.set()
        self._db.close()

    def _answer(self, jobs: Sequence[_Job]) -> None:
        """On the loop: what is in memory follows, then whoever waits."""
        for job in jobs:
            if job.error is None:
                job.then(job.result)
            if not job.future.done():
                if job.error is None:
                    job.future.set_result(job.result)
                else:
                    job.future.set_exception(job.error)
        now, (then, taken) = time.monotonic(), self._looked
        if now - then > _LOOKED_AT_S:
            self._looked = now, time.thread_time()
            self._crowded = self._looked[1] - taken > _CROWDED * (now - then)

    def _write_long(self, job: _Job) -> None:
        """Writes what is long. Once it lets others go first that come meanwhile with what is short:
        what is written by then is taken back."""
        self._interruptible = job
        broken = self._transact([job], guarded=False, interruptible=True)
        self._interruptible = None
        if broken is None:
            return
        others = self._shorter(job.tenant) if was_asked_back(broken) else []
        for group in (others, [job]):
            if group and self._transact(group, guarded=False) is not None:
                self._write_apart(group)
            if group is others:
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._answer, others)

    def _shorter(self, tenant: str) -> list[_Job]:
        """What came meanwhile of others, is short, and stands behind nothing of its own tenant. All
        else waits for its turn."""
        waiting, shorter = self._waiting, list[_Job]()
        with suppress(queue.Empty):
            while (job := self._queue.get_nowait()) is not None:
                stands = waiting.waiting(job.tenant) or len(shorter) == _GROUP_ROWS // _LONG_ROWS
                if stands or job.alone or job.rows > _LONG_ROWS or job.tenant in ("", tenant):
                    waiting.push(job.tenant, job, job.rows)
                else:
                    shorter.append(job)
            self._queue.put(None)  # for who looks for it
        return shorter

    def _do(self, jobs: Sequence[_Job]) -> None:
        """Work that cannot be done within a transaction."""
        for job in jobs:
            try:
                job.result = job.work(self._db)
            except sqlite3.Error as error:
                job.error = StoreUnavailable(f"the database cannot be written now: {error}")
            except Exception as error:
                job.error = error

    def _write_apart(self, jobs: Sequence[_Job]) -> None:
        """Writes a group that could not be written in one go; afterwards each job has its result or
        its error.

        A group is first written without savepoints, which would double the statements: with a busy
        event loop that is half of the throughput. Only where a job fails is the group written
        again, here, each job in a savepoint, so that it fails alone. Where the database itself
        fails (disk full, I/O error), each is tried in a transaction of its own: a large one that
        does not fit must not fail those that do.
        """
        broken = self._transact(jobs, guarded=True)
        if broken is None:
            return
        if len(jobs) > 1:
            for job in jobs:
                self._write_apart([job])
        else:
            if not self.failure:  # once: every worker meets it, again and again
                log.error("store_cannot_be_written", why=str(broken))
            self.failure = str(broken)
            jobs[0].error = StoreUnavailable(f"the database cannot be written now: {self.failure}")

    def _transact(
        self, jobs: Sequence[_Job], *, guarded: bool, interruptible: bool = False
    ) -> Exception | None:
        """One transaction: None once it is durable, else what broke it. Nothing is written then.
        An interruption that was meant for a long write before is no reason to end another."""
        db = self._db
        changes = db.total_changes
        db.asked_back = False
        try:
            db.execute("BEGIN IMMEDIATE")
            if guarded:
                for job in jobs:
                    _guard(db, job)
            else:
                _work(db, jobs)
            db.execute("COMMIT")
        except Exception as error:
            with suppress(sqlite3.Error):
                if db.in_transaction:
                    db.execute("ROLLBACK")
            if was_asked_back(error) and not interruptible:
                return self._transact(jobs, guarded=guarded)
            return error
        # A transaction that changed no row wrote nothing, so it does not show that the disk can be
        # written again.
        if self.failure and db.total_changes > changes:
            self.failure = ""
            log.warning("store_can_be_written_again")
        return None


def _too_long(jobs: Sequence[_Job]) -> bool:
    """True where others than these tenants would wait long for what is written."""
    return max(map(_ROWS, jobs), default=0) > _LONG_ROWS or sum(map(_ROWS, jobs)) > _GROUP_ROWS


def _turns(waiting: FairQueue[_Job]) -> list[_Job]:
    """The next group of those that wait. What is long is one by itself."""
    jobs: list[_Job] = []
    rows = 0

    def may(tenant: str) -> bool:
        return not jobs or waiting.cost(tenant) <= _LONG_ROWS

    while len(jobs) < _GROUP and rows < _GROUP_ROWS and (job := waiting.pop(may)) is not None:
        jobs.append(job)
        rows += job.rows
        if job.rows > _LONG_ROWS:
            break
    return jobs


def _work(db: sqlite3.Connection, jobs: Sequence[_Job]) -> None:
    """All jobs in order; those next to each other that are usual commits, together."""
    together: list[Commit] = []
    for job in jobs:
        if job.append is not None:
            together.append(job.append)
            continue
        if together:
            _append_all(db, together)
            together = []
        job.result = job.work(db)
    if together:
        _append_all(db, together)


class _Apart(Exception):
    """Several commits could not be written in one go. One by one each tells what it meets."""


def _append_all(db: sqlite3.Connection, changes: Sequence[Commit]) -> None:
    """Writes usual commits by two statements for all of them: between any two this thread waits for
    the interpreter, which is what a group costs. Raises _Apart, or what SQLite raises."""
    heads: list[tuple[Any, ...]] = []
    rows: list[tuple[Any, ...]] = []
    for change in changes:
        head = change.head
        expected = head.incarnation, change.expected_revision, head.ancestors[-COMMIT_ID:]
        heads.append(updated_values(head) + head.scope + expected)
        for row in change.messages:
            rows.append(head.scope + message_values(row))
    if at_once(db, update_heads, heads) != len(heads):
        raise _Apart
    at_once(db, insert_messages, rows)


_MOST_AT_ONCE = 256
"""Rows of one statement: a third of SQLite's limit of parameters (32,766)."""


def at_once(
    db: sqlite3.Connection, statement: Callable[[int], str], rows: Sequence[tuple[Any, ...]]
) -> int:
    """Runs a statement over all rows at once, filled up with NULLs to a power of two, so that few
    statements are prepared. Answers how many rows it met. Raises AskedBack.

    `executemany` waits for the interpreter at each row. Beside a loop that never rests 200 messages
    took 8 ms in one statement and 12 in four.
    """
    met = 0
    for first in range(0, len(rows), _MOST_AT_ONCE):
        piece = rows[first : first + _MOST_AT_ONCE]
        size = 1 << (len(piece) - 1).bit_length()
        values = list(chain.from_iterable(piece))
        values += repeat(None, (size - len(piece)) * len(piece[0]))
        if isinstance(db, StoreConnection) and db.asked_back:
            raise AskedBack
        met += db.execute(statement(size), values).rowcount
    return met


def _guard(db: sqlite3.Connection, job: _Job) -> None:
    """One job in a savepoint, so that its failure is its own."""
    job.error = None
    db.execute("SAVEPOINT job")
    try:
        job.result = job.work(db)
    except Exception as error:
        if of_database(error):
            raise
        job.error = error
        db.execute("ROLLBACK TO job")
    db.execute("RELEASE job")
