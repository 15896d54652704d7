"""The search index of the SQLite store: which connection does what."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from contextengine_server.context.scope import Scope
from contextengine_server.store.rows import SummaryRow
from contextengine_server.store.search import (
    MAX_LANES,
    Advance,
    Asking,
    Lane,
    Match,
    Progress,
    SearchSpan,
)

from . import lookups, passages
from .disk import purge, space

T = TypeVar("T")


class Run(Protocol):
    """Runs work on a connection that others use too, one at a time."""

    async def __call__(self, work: Callable[..., T], /, *args: Any) -> T: ...


class Write(Protocol):
    """Runs work on the connection that writes, when it is its tenant's turn (empty: the server's
    own); `then` follows on the loop, once it is durable."""

    async def __call__(
        self,
        work: Callable[[sqlite3.Connection], T],
        then: Callable[[T], None] = ...,
        /,
        *,
        tenant: str = "",
    ) -> T: ...


_READER_S = 0.02
"""How long a reader may take until the log is tried again."""


@dataclass(slots=True)
class _Purge:
    """A purge that goes on."""

    asked: int
    """How many were asked for when it began."""
    tables: list[str]
    """What is still to be folded."""
    begins: bool = True
    """Whether the last of them is yet untouched."""
    vacuumed: bool = False
    """Whether the file was written anew."""


class SqliteIndex:
    """`SearchIndex` over the tables here. `read` and `write` run work on a reading connection and
    on the one that writes, `alone` on that one outside a transaction."""

    def __init__(self, read: Run, write: Write, alone: Run) -> None:
        self._read, self._write, self._alone = read, write, alone
        self.available = False
        self.noted: Callable[[Scope], None] = lambda scope: None
        self._unfolded = passages.FOLD_AFTER
        self._folding: list[str] = []
        self._purge: _Purge | None = None
        self._purging = asyncio.Lock()
        self._kept = lookups.Kept()

    async def progress(self, scope: Scope) -> Progress | None:
        """How far the index has come with a session."""
        return await self._read(passages.progress, scope)

    async def behind(self, limit: int) -> list[Scope]:
        """Sessions that have revisions which the index has not seen."""
        return await self._read(
            lambda db: [Scope(*row) for row in db.execute(passages.BEHIND, {"limit": limit})]
        )

    async def advance(self, steps: Sequence[Advance]) -> None:
        """Writes documents and moves cursors."""
        if self.available:
            await self._write(lambda db: passages.advance(db, steps))
            self._unfolded += 1

    async def summaries(self, scope: Scope, skip: int) -> list[tuple[int, SummaryRow]]:
        """(ordinal, row) of the session's summaries, behind the first `skip`."""
        return await self._read(passages.summaries, scope, skip)

    async def renew(self, scope: Scope) -> None:
        """Gives up what is held of a session, and begins with it anew."""

        def renewed(_: object) -> None:  # also where nobody waits for it any more
            self._kept.clear()
            self.noted(scope)

        await self._write(lambda db: passages.renew(db, scope), renewed)

    async def tidy(self) -> bool:
        """Erases a little of what is doomed, or folds a little."""
        if await self.erase():
            return True
        if await self.purge():
            return True
        if not self.available:
            return False
        if self._unfolded >= passages.FOLD_AFTER:
            self._folding, self._unfolded = list(passages.FTS), 0
        if self._folding:
            table = self._folding[-1]
            if not await self._write(lambda db: passages.fold(db, table)):
                # Unless somebody else who tidies up came first.
                self._folding = [one for one in self._folding if one != table]
        return bool(self._folding)

    async def erase(self) -> bool:
        """Erases some passages of a deleted session; False where none is left."""
        if not await self._read(lambda db: db.execute(passages.DOOMED).fetchone()):
            return False
        self._unfolded += 1
        await self._write(lambda db: passages.erase(db, self.available))
        self._kept.clear()
        return True

    async def purge(self) -> bool:
        """One short piece of overwriting what was erased; False where nothing is left of it."""
        async with self._purging:
            if self._purge is None:
                asked = await self._read(purge.asked)
                if not asked:
                    return False
                self._purge = _Purge(asked, list(passages.FTS) if self.available else [])
            now = self._purge
            if now.tables:
                table, begin = now.tables[-1], now.begins
                now.begins = False
                if not await self._write(lambda db: purge.fold(db, table, begin=begin)):
                    now.tables.pop()
                    now.begins = True
                return True
            if not now.vacuumed and await self._read(space.taken) <= space.TINY:
                await self._alone(space.vacuum)
                now.vacuumed = True
                return True
            if not now.vacuumed and await self._write(space.give_back):
                return True
            if not await self._alone(space.truncate_log):
                await asyncio.sleep(_READER_S)
                return True
            await self._write(lambda db: purge.done(db, now.asked, vacuumed=now.vacuumed))
            self._purge = None
            return await self._read(purge.asked) > 0

    async def look(self, spans: Sequence[SearchSpan], asking: Asking, limit: int) -> list[Match]:
        """What `find` answers for the lanes that come of `asking`."""
        return (
            await self._read(lookups.look, self._kept, spans, asking, limit)
            if self.available
            else []
        )

    async def find(
        self, spans: Sequence[SearchSpan], lanes: Sequence[Lane], limit: int
    ) -> list[Match]:
        """At most `limit` places, the heaviest first."""
        return (
            await self._read(lookups.find, self._kept, spans, lanes[:MAX_LANES], limit)
            if self.available and lanes
            else []
        )

    async def scan(
        self, span: SearchSpan, limit: int, *, below: int | None = None, containing: str = ""
    ) -> tuple[list[Match], int | None]:
        """Passages from the newest place down."""
        return (
            await self._read(lookups.scan, span, limit, below, containing)
            if self.available
            else ([], None)
        )
