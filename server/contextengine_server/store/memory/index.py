"""`SearchIndex` over the passages in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import islice

from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.rows import MessageRow, SummaryRow
from contextengine_server.store.search import (
    MAX_LANES,
    MAX_PLACE,
    Advance,
    Asking,
    Cursor,
    DocumentKind,
    Lane,
    Match,
    Progress,
    SearchSpan,
)

from .passages import Passage, Place, finder, weigh
from .tables import Tables, live


class MemoryIndex:
    """`tables` answers the tables, or raises StoreUnavailable."""

    available = True

    def __init__(self, tables: Callable[[], Tables]) -> None:
        self._tables = tables
        self.noted: Callable[[Scope], None] = lambda scope: None

    async def progress(self, scope: Scope) -> Progress | None:
        """How far the index has come with a session."""
        tables = self._tables()
        session = tables.sessions.get(scope)
        if session is None or session.head.archived:
            return None
        incarnation, revision = session.head.incarnation, session.head.revision
        cursor = tables.passages.cursor(scope, incarnation) or Cursor()
        first, last = session.first_sequence, session.last_sequence
        return Progress(cursor, incarnation, revision, first, last, len(session.summaries))

    async def behind(self, limit: int) -> list[Scope]:
        """Sessions that have revisions which the index has not seen."""
        tables = self._tables()

        def is_behind(scope: Scope) -> bool:
            head = tables.sessions[scope].head
            if head.archived:
                return False
            cursor = tables.passages.cursor(scope, head.incarnation)
            return cursor is None or cursor.revision < head.revision

        return list(islice(filter(is_behind, tables.sessions), limit))

    async def advance(self, steps: Sequence[Advance]) -> None:
        """Writes documents and moves cursors."""
        tables = self._tables()
        for step in steps:
            head = tables.head(step.scope)
            if head is not None and head.incarnation == step.incarnation:
                tables.passages.take(step)

    async def summaries(self, scope: Scope, skip: int) -> list[tuple[int, SummaryRow]]:
        """(ordinal, row) of the session's summaries, behind the first `skip`."""
        session = self._tables().sessions.get(scope)
        if session is None:
            return []
        created = sorted(session.summaries.values(), key=lambda row: (row.created_revision, row.id))
        gone = {(row.remakes, row.generation) for row in created if row.remakes}
        rows = [
            replace(row, text="") if (row.id, row.generation) in gone else row for row in created
        ]
        return list(enumerate(rows))[skip:]

    async def renew(self, scope: Scope) -> None:
        """Gives up what is held of a session, and begins with it anew."""
        self._tables().passages.drop(scope)
        self.noted(scope)

    async def erase(self) -> bool:
        """Nothing is left of what was deleted."""
        self._tables()
        return False

    async def tidy(self) -> bool:
        """There is nothing to keep up."""
        self._tables()
        return False

    async def look(self, spans: Sequence[SearchSpan], asking: Asking, limit: int) -> list[Match]:
        """What `find` answers for the lanes that come of `asking`."""
        tables = self._tables()
        passages = [passage for span in spans for _, passage in _within(tables, span)]
        try:
            lanes = next(asking)
            while True:
                lanes = asking.send([sum(map(finder(lane), passages)) for lane in lanes])
        except StopIteration as asked:
            return await self.find(spans, asked.value, limit)

    async def find(
        self, spans: Sequence[SearchSpan], lanes: Sequence[Lane], limit: int
    ) -> list[Match]:
        """At most `limit` places, the heaviest first."""
        tables = self._tables()
        lanes = lanes[:MAX_LANES]
        ranked = [
            [
                (weight, _match(span, row, at, passage, hits))
                for weight, at, hits, passage in weigh(_within(tables, span), lanes)
                for row in _chosen(tables, span, at[0])
            ]
            for span in spans
        ]
        places: dict[tuple[Scope, int], Match] = {}
        for _, match in merge(*ranked, key=lambda one: (-one[0], -one[1].place)):
            if len(places) >= limit:
                break
            places.setdefault((match.span.scope, match.place), match)
        return list(places.values())

    async def scan(
        self, span: SearchSpan, limit: int, *, below: int | None = None, containing: str = ""
    ) -> tuple[list[Match], int | None]:
        """Passages from the newest place down."""
        tables = self._tables()
        holds = finder(Lane(containing, substring=True))
        wanted = (one for one in _within(tables, span, below) if holds(one[1]))
        seen = list(islice(wanted, limit))
        places = {at[0]: (at, passage) for at, passage in seen}
        matches = [
            _match(span, row, at, passage)
            for at, passage in places.values()
            for row in _chosen(tables, span, at[0])
        ]
        return matches, seen[-1][0][0] if len(seen) == limit else None


def _within(
    tables: Tables, span: SearchSpan, below: int | None = None
) -> Iterator[tuple[Place, Passage]]:
    """The passages of a span, from the newest down."""
    last = min(span.last, MAX_PLACE if below is None else below - 1)
    return tables.passages.newest_first(span.scope, span.kind, span.first, last)


def _chosen(tables: Tables, span: SearchSpan, place: int) -> list[MessageRow | None]:
    """The row of a place where it is to be found: a message's; None stands for a summary."""
    if span.kind is DocumentKind.SUMMARY:
        return [None] if span.places is None or place in span.places else []
    session = tables.sessions.get(span.scope)
    row = None if session is None else session.messages.get(place)
    if row is None or row.created_revision > span.revision:
        return []
    time = row.time_ms
    wanted = (
        (span.retired or live(row) or row.retired_revision > span.revision)
        and (not span.roles or row.role in span.roles)
        and (span.start_ms is None or (time is not None and time >= span.start_ms))
        and (span.end_ms is None or (time is not None and time < span.end_ms))
    )
    return [row] if wanted else []


def _match(
    span: SearchSpan, row: MessageRow | None, at: Place, passage: Passage, lanes: int = 0
) -> Match:
    place, part = at
    if row is None:
        return Match(span, place, part, passage.text, lanes)
    return Match(span, place, part, passage.text, lanes, row.role, row.time_ms, row.host_id)
