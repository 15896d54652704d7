"""The search index of the PostgreSQL store: passages as the words that the server cuts texts into,
so that every store finds the same.

A look-up reads the passages of its session and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.rows import SummaryRow
from contextengine_server.store.search import (
    MAX_LANES,
    MAX_PARTS,
    MAX_PLACE,
    Advance,
    Asking,
    Cursor,
    Lane,
    Match,
    Progress,
    SearchSpan,
)
from contextengine_server.store.sql import columns
from contextengine_server.store.words import spread, stems

from .. import reads
from ..connections import Connections, Db
from ..keys import home, life, named
from ..statements import (
    ADD_CURSOR,
    ADD_PASSAGES,
    BEHIND,
    CURSOR_OF,
    DELETE_INDEX,
    EXTENT,
    LOCK_TO_STAND,
    MOVE_CURSOR,
    REMADE,
    SUMMARIES,
)
from ..transactions import Transact
from ..writes import as_arrays
from . import lookups


class PostgresIndex:
    """`SearchIndex` over two tables. `write` runs work in a transaction."""

    def __init__(self, connections: Connections, write: Transact) -> None:
        self._connections, self._write = connections, write
        self.available = True
        self.noted: Callable[[Scope], None] = lambda scope: None

    async def progress(self, scope: Scope) -> Progress | None:
        """How far the index has come with a session."""
        return await self._connections.read(_progress, scope)

    async def behind(self, limit: int) -> list[Scope]:
        """Sessions that have revisions which the index has not seen."""
        rows = await self._connections.read(Db.rows, BEHIND, {"limit": limit})
        return [Scope(*row) for row in rows]

    async def advance(self, steps: Sequence[Advance]) -> None:
        """Writes documents and moves cursors."""
        # In the order of their keys, so that two who index the same sessions wait in turn.
        ordered = sorted(steps, key=lambda step: home(step.scope))

        async def work(db: Db) -> None:
            for step in ordered:
                await _advance(db, step)

        await self._write(work)

    async def summaries(self, scope: Scope, skip: int) -> list[tuple[int, SummaryRow]]:
        """(ordinal, row) of the session's summaries, behind the first `skip`."""
        return await self._connections.read(_summaries, scope, skip)

    async def renew(self, scope: Scope) -> None:
        """Gives up what is held of a session, and begins with it anew."""

        async def work(db: Db) -> None:
            for statement in DELETE_INDEX:
                await db.met(statement, named(scope))

        await self._write(work, lambda _: self.noted(scope))

    async def erase(self) -> bool:
        """Nothing is left of what was deleted: it went with its session."""
        await self._connections.read(Db.value, "SELECT 1")
        return False

    async def tidy(self) -> bool:
        """There is nothing to keep up: the database does it."""
        return await self.erase()

    async def look(self, spans: Sequence[SearchSpan], asking: Asking, limit: int) -> list[Match]:
        """What `find` answers for the lanes that come of `asking`."""
        return await self._connections.read(lookups.look, spans, asking, limit)

    async def find(
        self, spans: Sequence[SearchSpan], lanes: Sequence[Lane], limit: int
    ) -> list[Match]:
        """At most `limit` places, the heaviest first."""
        if not lanes:
            return []
        return await self._connections.read(lookups.find, spans, lanes[:MAX_LANES], limit)

    async def scan(
        self, span: SearchSpan, limit: int, *, below: int | None = None, containing: str = ""
    ) -> tuple[list[Match], int | None]:
        """Passages from the newest place down."""
        return await self._connections.read(lookups.scan, span, limit, below, containing)


async def _progress(db: Db, scope: Scope) -> Progress | None:
    async with reads.snapshot(db):
        head = await reads.head(db, scope)
        if head is None or head.archived:
            return None
        cursor = await _cursor(db, scope, head.incarnation)
        extent = await db.row(EXTENT, named(scope))
    assert extent is not None
    first, last, summaries = extent
    known = cursor or Cursor()
    return Progress(known, head.incarnation, head.revision, first or 0, last or 0, summaries)


async def _cursor(db: Db, scope: Scope, incarnation: str, lock: str = "") -> Cursor | None:
    row = await db.row(CURSOR_OF + lock, _of_life(scope, incarnation))
    return None if row is None else Cursor(*row)


def _of_life(scope: Scope, incarnation: str) -> dict[str, Any]:
    return {"home": home(scope), "life": life(scope, incarnation)}


async def _summaries(db: Db, scope: Scope, skip: int) -> list[tuple[int, SummaryRow]]:
    async with reads.snapshot(db):
        gone = {tuple(row) for row in await db.rows(REMADE, named(scope))}
        rows = columns.summaries(await db.rows(SUMMARIES, named(scope, skip=skip)))
    return [
        (ordinal, replace(row, text="") if (row.id, row.generation) in gone else row)
        for ordinal, row in enumerate(rows, skip)
    ]


async def _advance(db: Db, step: Advance) -> None:
    """Writes the documents of one step and moves its cursor, where the session is as it expects."""
    head = await reads.head(db, step.scope, LOCK_TO_STAND)
    if head is None or head.incarnation != step.incarnation:
        return
    names = _of_life(step.scope, step.incarnation)
    await db.met(ADD_CURSOR, names)  # a row that is there can be locked
    if step.before != await _cursor(db, step.scope, step.incarnation, " FOR UPDATE"):
        return
    after = step.after
    to = {
        "sequence": after.sequence,
        "parts": after.parts,
        "summaries": after.summaries,
        "revision": after.revision,
    }
    await db.met(MOVE_CURSOR, {**names, **to})
    rows = []
    for document in step.documents:
        if document.place <= MAX_PLACE and document.part < MAX_PARTS:
            text, folded = document.text, document.text.lower()
            rows.append(
                (
                    names["home"],
                    names["life"],
                    int(document.kind),
                    document.place,
                    document.part,
                    text,
                    f" {' '.join(stems(spread(text)))} ",
                    None if folded == text else folded,
                )
            )
    if rows:
        await db.met(ADD_PASSAGES, as_arrays(rows, 5, 6, 7))
