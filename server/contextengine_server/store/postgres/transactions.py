"""Who writes: the usual commits of many sessions go in one statement, everything else in a
transaction of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any, Protocol, TypeVar

import asyncpg

from contextengine_server.fairness.turns import FairQueue
from contextengine_server.store.errors import StoreUnavailable, StoreUncertain
from contextengine_server.store.rows import Commit, SessionHead
from contextengine_server.store.sql.columns import MESSAGE, UPDATED, message_values, updated_values

from . import reads, writes
from .connections import FAILURES, LOST, Connections, Db
from .keys import home, life
from .statements import LOCK, ROUND, ROUND_HEAD, ROUND_MESSAGE

T = TypeVar("T")

_ASKED_S = 10.0
"""How long the database is asked what became of a commit."""
_PAUSE_S = 0.1
_GROUP = 256
"""Commits in one statement, at most: the first of them waits for the last."""
_TEXTS_OF_HEAD = tuple(
    len(ROUND_HEAD) - len(UPDATED) + UPDATED.index(name)
    for name in ("session_key", "parent_session", "parent_incarnation", "model", "provider")
)
_TEXTS_OF_MESSAGE = (1 + MESSAGE.index("host_id"),)
assert len(ROUND_MESSAGE) == 1 + len(MESSAGE)


class NotSent(Exception):
    """There was no connection to send the statement by."""


class Transact(Protocol):
    """Runs work in a transaction, whole whether or not anyone still waits; `then` follows on the
    loop, once it is durable."""

    async def __call__(
        self, work: Callable[[Db], Awaitable[T]], then: Callable[[T], None] = ..., /
    ) -> T: ...


@dataclass(slots=True, eq=False)
class _Waiting:
    """A usual commit, and who waits for it."""

    change: Commit
    future: asyncio.Future[None]


class Transactions:
    """The writes of a store. Each goes on where its caller is cancelled."""

    def __init__(self, connections: Connections, committed: Callable[[Commit], None]) -> None:
        self._connections = connections
        self._committed = committed
        self._tasks: set[asyncio.Task[Any]] = set()
        self._waiting: FairQueue[_Waiting] = FairQueue()
        self._line: asyncpg.Connection | None = None
        """The connection of the usual commits, so that they wait for nobody's transaction."""
        self._round: asyncio.Task[None] | None = None

    def queued(self) -> int:
        """How many usual commits wait for the statement before theirs."""
        return len(self._waiting)

    # Transactions

    async def transact(
        self, work: Callable[[Db], Awaitable[T]], then: Callable[[T], None] = lambda result: None
    ) -> T:
        """Runs work in one transaction. Raises what it raises, and StoreUnavailable."""
        self._require_open()

        async def whole() -> T:
            done = await self._connections.write(work)
            then(done)
            return done

        return await asyncio.shield(self._start(whole()))

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # where nobody waits any more, nobody is told

    def _require_open(self) -> None:
        if not self._connections.is_open:
            raise StoreUnavailable("the store is closed")

    async def close(self) -> None:
        """Writes what is queued, and ends the line of the usual commits."""
        while self._tasks or self._round is not None:
            under_way = [*self._tasks, *([self._round] if self._round is not None else [])]
            await asyncio.wait(under_way)
        line, self._line = self._line, None
        if line is not None:
            with suppress(*FAILURES):
                await line.close(timeout=self._connections.options.wait_s)

    # Commits

    def commit(self, change: Commit, *, usual: bool) -> Awaitable[None]:
        """Queues a commit. `usual`: it brings an existing session's head on and adds messages, and
        nothing else."""
        self._require_open()
        if not usual:
            return asyncio.shield(self._start(self._alone(change)))
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.push(change.head.scope.tenant, _Waiting(change, future))
        if self._round is None:
            self._round = asyncio.create_task(self._rounds())
        return future

    async def _alone(self, change: Commit) -> None:
        await self._commit(change)
        self._committed(change)

    async def _rounds(self) -> None:
        try:
            while self._waiting:
                await self._write(self._next())
        finally:
            self._round = None

    def _next(self) -> list[_Waiting]:
        """The commits of the next statement, by turns of their tenants: of each session one, since
        a statement sees no row that it changed itself."""
        taken: dict[Any, _Waiting] = {}
        later: list[_Waiting] = []
        while len(taken) < _GROUP and (one := self._waiting.pop()) is not None:
            if one.change.head.scope in taken:
                later.append(one)
            else:
                taken[one.change.head.scope] = one
        for one in later:
            self._waiting.push(one.change.head.scope.tenant, one)
        return list(taken.values())

    async def _write(self, group: Sequence[_Waiting]) -> None:
        """Writes a group in one statement; where that fails or one of them lost a race, that is
        told, or found out, one by one."""
        try:
            won = await self._at_once([one.change for one in group])
        except Exception as error:
            await asyncio.gather(*(self._apart(one, error) for one in group))
            return
        self._connections.works()
        lost = []
        for number, one in enumerate(group, 1):
            if number in won:
                self._answer(one, None)
            else:
                lost.append(one)
        if lost:
            await asyncio.gather(*(self._apart(one, None) for one in lost))

    async def _at_once(self, changes: Sequence[Commit]) -> set[int]:
        """Runs the statement; the numbers of those that were written, from 1."""
        heads, messages = [], []
        for number, change in enumerate(changes, 1):
            head = change.head
            key = home(head.scope), life(head.scope, head.incarnation)
            expected = change.expected_revision, change.expected_commit
            heads.append(key + expected + updated_values(head))
            messages += [(number, *message_values(row)) for row in change.messages]
        parameters = (
            *writes.as_arrays(heads, *_TEXTS_OF_HEAD),
            *writes.as_arrays(messages, *_TEXTS_OF_MESSAGE),
        )
        if self._line is None or self._line.is_closed():
            try:
                self._line = await self._connections.connect()
            except FAILURES as error:
                raise NotSent from error
        with self._connections.watched(self._line):
            return {row[0] for row in await self._line.fetch(ROUND, *parameters)}

    async def _apart(self, one: _Waiting, failure: Exception | None) -> None:
        """What becomes of a commit that was not written with the others. `failure`: of the
        statement."""
        try:
            if failure is None or not await self._was_written(one.change, failure):
                await self._commit(one.change)
        except Exception as error:
            self._answer(one, error)
        else:
            self._answer(one, None)

    async def _commit(self, change: Commit) -> None:
        """Writes a commit in a transaction of its own."""
        try:
            await self._connections.write(lambda db: writes.commit(db, change))
        except StoreUncertain as error:
            if not await self._was_written(change, error):
                raise StoreUnavailable(f"{error}; it was not written") from None

    async def _was_written(self, change: Commit, failure: Exception) -> bool:
        """Whether a commit was written whose statement failed so: asks the database, by the name in
        the head. Raises StoreUncertain where it does not answer in time."""
        if isinstance(failure, NotSent) or not isinstance(failure, (*LOST, StoreUncertain)):
            return False
        head, until = change.head, monotonic() + _ASKED_S

        async def head_at_rest(db: Db) -> SessionHead | None:
            await self._connections.end_lost(db)
            return await reads.head(db, head.scope, LOCK)

        while True:
            try:
                found = await self._connections.write(head_at_rest)
            except StoreUnavailable:
                if monotonic() > until:
                    raise StoreUncertain(
                        f"{head.scope.session}: the database went away while a change was"
                        " committed, and cannot be asked what became of it"
                    ) from None
                await asyncio.sleep(_PAUSE_S)
                continue
            return found is not None and (found.same_as(head) or found.grew_from(head))

    def _answer(self, one: _Waiting, error: Exception | None) -> None:
        """On the loop: what is in memory follows, then whoever waits."""
        if error is None:
            self._committed(one.change)
        if not one.future.done():
            if error is None:
                one.future.set_result(None)
            else:
                one.future.set_exception(error)
