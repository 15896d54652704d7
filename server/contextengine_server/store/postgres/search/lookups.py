"""Look-ups in the search index. Each stays within the passages of one session's present life."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import merge
from itertools import islice
from typing import Any, NamedTuple

from contextengine_server.context.scope import Scope
from contextengine_server.store.search import (
    MAX_LANES,
    MAX_PLACE,
    Asking,
    DocumentKind,
    Lane,
    Match,
    SearchSpan,
)
from contextengine_server.store.words import sought, stems

from ..connections import Db
from ..keys import named
from ..reads import snapshot
from ..statements import COUNT, FIND_MESSAGES, FIND_SUMMARIES, ROWS, SCAN, TEXTS


class _Found(NamedTuple):
    """A place that a look-up found, by its heaviest passage."""

    span: SearchSpan
    place: int
    part: int
    weight: int
    lanes: int
    role: int = 0
    time_ms: int | None = None
    host_id: str = ""


async def look(db: Db, spans: Sequence[SearchSpan], asking: Asking, limit: int) -> list[Match]:
    async with snapshot(db):
        try:
            lanes = next(asking)
            while True:
                lanes = asking.send(await _counted(db, spans, lanes))
        except StopIteration as asked:
            return await _found(db, spans, asked.value[:MAX_LANES], limit)


async def _counted(db: Db, spans: Sequence[SearchSpan], lanes: Sequence[Lane]) -> list[int]:
    counts = [0] * len(lanes)
    for span in spans if lanes else ():
        names = _range(span)
        if names is not None:
            # A lane is told by its number here: there may be more than an integer has bits.
            of_lanes = {**_lanes(lanes), "bits": list(range(len(lanes)))}
            for number, found in await db.rows(COUNT, {**names, **of_lanes}):
                counts[number] += found
    return counts


async def find(
    db: Db, spans: Sequence[SearchSpan], lanes: Sequence[Lane], limit: int
) -> list[Match]:
    async with snapshot(db):
        return await _found(db, spans, lanes, limit)


async def _found(
    db: Db, spans: Sequence[SearchSpan], lanes: Sequence[Lane], limit: int
) -> list[Match]:
    if not lanes or not limit:
        return []
    of_lanes = _lanes(lanes)
    ranked = [await _ranked(db, span, of_lanes, limit) for span in spans]
    best: dict[tuple[Scope, int], _Found] = {}
    for found in merge(*ranked, key=lambda one: (-one.weight, -one.place)):
        best.setdefault((found.span.scope, found.place), found)
    chosen = list(islice(best.values(), limit))
    said: dict[tuple[Scope, DocumentKind, int, int], str] = {}
    for span in spans:
        own = [one for one in chosen if one.span is span]
        if own:
            names = _of_span(span, places=[one.place for one in own])
            rows = await db.rows(TEXTS, {**names, "parts": [one.part for one in own]})
            said |= {(span.scope, span.kind, place, part): text for place, part, text in rows}
    return [
        Match(
            one.span,
            one.place,
            one.part,
            said[one.span.scope, one.span.kind, one.place, one.part],
            one.lanes,
            one.role,
            one.time_ms,
            one.host_id,
        )
        for one in chosen
    ]


async def _ranked(db: Db, span: SearchSpan, of_lanes: dict[str, Any], limit: int) -> list[_Found]:
    """The places of a span that any lane matches, the heaviest first."""
    names = _range(span)
    if names is None:
        return []
    names |= {**of_lanes, "limit": limit}
    if span.kind is DocumentKind.MESSAGE:
        rows = await db.rows(FIND_MESSAGES, {**names, **_wanted(span)})
    else:
        places = {"any_place": span.places is None, "places": list(span.places or ())}
        rows = await db.rows(FIND_SUMMARIES, {**names, **places})
    return [_Found(span, *row) for row in rows]


async def scan(
    db: Db, span: SearchSpan, limit: int, below: int | None, containing: str
) -> tuple[list[Match], int | None]:
    names = _range(span, below)
    if names is None:
        return [], None
    names |= {"containing": containing.lower(), "limit": limit}
    async with snapshot(db):
        seen = await db.rows(SCAN, names)
        rows = {place: (part, text) for place, part, text in seen}
        if span.kind is DocumentKind.MESSAGE:
            wanted = {**_of_span(span, places=list(rows)), **_wanted(span)}
            chosen = {row[0]: tuple(row)[1:] for row in await db.rows(ROWS, wanted)}
        else:
            chosen = {place: () for place in rows if span.places is None or place in span.places}
    matches = [
        Match(span, place, part, text, 0, *chosen[place])
        for place, (part, text) in rows.items()
        if place in chosen
    ]
    return matches, seen[-1][0] if len(seen) == limit else None


def _lanes(lanes: Sequence[Lane]) -> dict[str, Any]:
    """The lanes as arrays."""
    return {
        "sought": [_sought(lane) for lane in lanes],
        "anywhere": [lane.substring for lane in lanes],
        "weights": [lane.weight for lane in lanes],
        "bits": [1 << at for at in range(min(len(lanes), 63))],
    }


_NOWHERE = "   "
"""What no passage's words hold: three spaces. One without words has two."""


def _sought(lane: Lane) -> str:
    """What a passage holds that the lane matches."""
    if lane.substring:
        return lane.text.lower()
    plain, begins = sought(lane.text)
    words = stems(plain)
    if not words:
        return _NOWHERE
    return f" {' '.join(words)}{'' if begins else ' '}"


def _range(span: SearchSpan, below: int | None = None) -> dict[str, Any] | None:
    """The parameters that say where to look; None where nothing can be."""
    last = min(span.last, MAX_PLACE if below is None else below - 1, MAX_PLACE)
    if not span.scope.complete or span.first > last:
        return None
    return _of_span(span, low=max(0, span.first), high=last)


def _of_span(span: SearchSpan, **more: Any) -> dict[str, Any]:
    return named(span.scope, kind=int(span.kind), **more)


def _wanted(span: SearchSpan) -> dict[str, Any]:
    """The parameters that say which messages are to be found."""
    return {
        "revision": span.revision,
        "retired": span.retired,
        "any_role": not span.roles,
        "roles": list(span.roles),
        "start_ms": span.start_ms,
        "end_ms": span.end_ms,
    }
