"""Heads of sessions, looked up together: the calls that come while a look-up is under way are
answered by the next one. An answer is never older than its question."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from contextengine_server.context.scope import Scope
from contextengine_server.store.rows import SessionHead
from contextengine_server.store.sql import columns

from .connections import Connections, Db
from .keys import home
from .statements import HEADS

_GROUP = 256
"""Sessions of one look-up, at most."""
_AT_ONCE = 1
"""Look-ups under way, at most: the longer the next one waits, the more it answers at once."""

_Asked = tuple[Scope, "asyncio.Future[SessionHead | None]"]


class HeadLookups:
    """Answers where sessions stand."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._asked: list[_Asked] = []
        self._under_way: set[asyncio.Task[None]] = set()
        self._begins = False

    def of(self, scope: Scope) -> asyncio.Future[SessionHead | None]:
        """The session's head, or None where there is no such session. Raises StoreUnavailable."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[SessionHead | None] = loop.create_future()
        self._asked.append((scope, future))
        if not self._begins and len(self._under_way) < _AT_ONCE:
            # Behind whatever the loop has ready now: much of it asks as well.
            self._begins = True
            loop.call_soon(self._begin)
        return future

    def _begin(self) -> None:
        self._begins = False
        asked, self._asked = self._asked[:_GROUP], self._asked[_GROUP:]
        if asked:
            task = asyncio.create_task(self._answer(asked))
            self._under_way.add(task)
            task.add_done_callback(self._go_on)

    def _go_on(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if self._asked and not self._begins:
            self._begin()

    async def _answer(self, asked: list[_Asked]) -> None:
        wanted = list({scope for scope, future in asked if not future.done()})
        try:
            found = await self._connections.read(_look_up, wanted) if wanted else {}
        except Exception as error:
            for _, future in asked:
                if not future.done():
                    future.set_exception(error)
            return
        for scope, future in asked:
            if not future.done():
                future.set_result(found.get(scope))

    async def close(self) -> None:
        """Waits for what is under way."""
        while self._under_way:
            with suppress(asyncio.CancelledError):
                await asyncio.wait(self._under_way)


async def _look_up(db: Db, wanted: list[Scope]) -> dict[Scope, SessionHead]:
    rows = await db.rows(HEADS, {"homes": [home(scope) for scope in wanted]})
    return {head.scope: head for head in columns.heads(rows)}
