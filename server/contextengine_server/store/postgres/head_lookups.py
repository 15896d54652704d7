"""Heads of sessions, looked up together: the calls that come while a look-up is under way are
answered by the next one. An answer is never older than its question.

The database is told the name of the commit that made the head last seen (`KnownHeads`), and only
answers what has another: where nobody else wrote, a look-up has no rows, however many sessions it
is about."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic

import asyncpg

from contextengine_server.context.scope import Scope
from contextengine_server.store.rows import Commit, SessionHead
from contextengine_server.store.sql import columns

from .connections import FAILURES, LOST, Connections, Db
from .keys import home
from .statements import HEADS

_GROUP = 256
"""Sessions of one look-up, at most."""
_KEPT = 20_000
"""Heads in memory: some tens of MB where their state is a KB. Another one costs its row each
time."""
_HANGS_S = 15.0
"""A look-up that takes longer has nobody at the other end: nobody waits as long for a lock
(`connections.SETTINGS`)."""
_PAUSE_S = 1.0
"""After a connection was not to be had, the pool's are used for so long."""

_Asked = tuple[Scope, "asyncio.Future[SessionHead | None]"]


class KnownHeads:
    """The heads last seen. They are never answered as they are: the database is asked whether each
    is still the one that it has."""

    def __init__(self, capacity: int = _KEPT) -> None:
        self._capacity = capacity
        self._heads: OrderedDict[Scope, SessionHead] = OrderedDict()

    def __len__(self) -> int:
        return len(self._heads)

    def of(self, scope: Scope) -> SessionHead | None:
        """A head of the session, where one was seen that its commit names."""
        head = self._heads.get(scope)
        if head is not None:
            self._heads.move_to_end(scope)
        return head

    def put(self, scope: Scope, head: SessionHead | None) -> None:
        """Where the session stands. None: there is no such session."""
        if head is None or not head.commit_id:
            self._heads.pop(scope, None)
            return
        self._heads[scope] = head
        self._heads.move_to_end(scope)
        if len(self._heads) > self._capacity:
            self._heads.popitem(last=False)

    def committed(self, commit: Commit) -> None:
        """A commit of our own: it is asked for next."""
        self.put(commit.head.scope, commit.head)


class HeadLookups:
    """Answers where sessions stand, by a connection of its own: lending one takes longer than
    asking."""

    def __init__(self, connections: Connections) -> None:
        self.known = KnownHeads()
        self._connections = connections
        self._line: asyncpg.Connection | None = None
        self._connects_at = 0.0
        self._asked: list[_Asked] = []
        self._rounds: asyncio.Task[None] | None = None

    def of(self, scope: Scope) -> asyncio.Future[SessionHead | None]:
        """The session's head, or None where there is no such session. Raises StoreUnavailable."""
        future: asyncio.Future[SessionHead | None] = asyncio.get_running_loop().create_future()
        self._asked.append((scope, future))
        if self._rounds is None:
            # It begins behind whatever the loop has ready now: much of it asks as well.
            self._rounds = asyncio.create_task(self._look_up())
        return future

    async def _look_up(self) -> None:
        """One look-up after the other, while anybody asks: the longer the next one waits, the more
        it answers at once."""
        try:
            while self._asked:
                asked, self._asked = self._asked[:_GROUP], self._asked[_GROUP:]
                await self._answer(asked)
        finally:
            self._rounds = None

    async def _answer(self, asked: Sequence[_Asked]) -> None:
        wanted = list({scope for scope, future in asked if not future.done()})
        try:
            found = await self._heads(wanted) if wanted else {}
        except Exception as error:
            for _, future in asked:
                if not future.done():
                    future.set_exception(error)
            return
        for scope, future in asked:
            if not future.done():
                future.set_result(found.get(scope))

    async def _heads(self, wanted: Sequence[Scope]) -> dict[Scope, SessionHead]:
        """What there is of these. Raises StoreUnavailable."""
        known = [self.known.of(scope) for scope in wanted]
        homes = [home(scope) for scope in wanted]
        names = [None if head is None else head.commit_id for head in known]
        rows = await self._rows(homes, names)
        if not rows:
            return {head.scope: head for head in known if head is not None}
        changed = {row[0] for row in rows}
        found = {
            head.scope: head
            for at, head in zip(homes, known, strict=True)
            if head is not None and at not in changed
        }
        for head in columns.heads(row[1:] for row in rows if row[1] is not None):
            found[head.scope] = head
        for scope, at in zip(wanted, homes, strict=True):
            if at in changed:
                self.known.put(scope, found.get(scope))
        return found

    async def _rows(
        self, homes: Sequence[int], names: Sequence[bytes | None]
    ) -> list[asyncpg.Record]:
        """What the database answers; where the connection is none or has ended, on one of the
        pool."""
        line = await self._held()
        if line is not None:
            try:
                rows: list[asyncpg.Record] = await line.fetch(HEADS, homes, names, timeout=_HANGS_S)
            except FAILURES as error:
                self._hang_up()
                if isinstance(error, TimeoutError) or not isinstance(error, LOST):
                    raise self._connections.broken(error) from None
            else:
                self._connections.works()
                return rows
        return await self._connections.read(Db.rows, HEADS, (homes, names))

    async def _held(self) -> asyncpg.Connection | None:
        """The connection; None where there is none to be had now."""
        if self._line is not None and self._line.is_closed():
            self._line = None
        if self._line is None and self._connections.is_open and monotonic() > self._connects_at:
            try:
                self._line = await self._connections.connect()
            except FAILURES:
                self._connects_at = monotonic() + _PAUSE_S
        return self._line

    def _hang_up(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.terminate()

    async def close(self) -> None:
        """Waits for what is under way, and ends the connection."""
        while self._rounds is not None:
            await asyncio.wait([self._rounds])
        line, self._line = self._line, None
        if line is not None:
            with suppress(*FAILURES):
                await line.close(timeout=self._connections.options.wait_s)
