"""Look-ups in the search index. Each stays within the numbers of one session, and reads the rows it
answers under its scope."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Any, NamedTuple

from contextengine_server.context.scope import Scope
from contextengine_server.store.search import (
    MAX_PARTS,
    MAX_PLACE,
    DocumentKind,
    Lane,
    Match,
    SearchSpan,
)
from contextengine_server.store.sql.columns import named

from .expressions import grams, phrase
from .passages import PART_BITS, number_of, passage_id
from .reads import snapshot

_PLACES_AT_ONCE = 256
_SCOPE = "tenant = :tenant AND agent = :agent AND session = :session"
_RANGE = "BETWEEN :low AND :high"
CHOSEN = f"""
    SELECT sequence, role, time_ms, host_id FROM messages
    WHERE {_SCOPE} AND sequence IN (SELECT value FROM json_each(:places)) AND created_revision <=
    :revision
    AND (:retired OR retired_revision = 0 OR retired_revision > :revision)
    AND (:roles = '[]' OR role IN (SELECT value FROM json_each(:roles)))
    AND (:start_ms IS NULL OR time_ms >= :start_ms) AND (:end_ms IS NULL OR time_ms < :end_ms)
"""
NEWEST = f"SELECT id FROM search_documents WHERE id {_RANGE} ORDER BY id DESC"
CONTAINING = (
    f"SELECT rowid FROM search_grams WHERE search_grams MATCH :match AND rowid {_RANGE} ORDER BY"
    " rowid DESC"
)
TEXT = "SELECT text FROM search_documents WHERE id = :id"


class _Found(NamedTuple):
    """A passage that a look-up found."""

    span: SearchSpan
    id: int
    weight: int = 0
    lanes: int = 0
    row: tuple[int, int | None, str] = (0, None, "")
    """Role, time and host id of its message."""

    @property
    def place(self) -> int:
        return self.id >> PART_BITS & MAX_PLACE


def count(db: sqlite3.Connection, spans: Sequence[SearchSpan], lanes: Sequence[Lane]) -> list[int]:
    counts = [0] * len(lanes)
    with snapshot(db):
        for span in spans:
            names = _range(db, span) or {}
            for index, lane in enumerate(lanes if names else ()):
                query = f"SELECT COUNT(*) FROM {_matching(lane)}"
                counts[index] += db.execute(
                    query, {**names, "match": _expression(lane)}
                ).fetchone()[0]
    return counts


def find(
    db: sqlite3.Connection, spans: Sequence[SearchSpan], lanes: Sequence[Lane], limit: int
) -> list[Match]:
    with snapshot(db):
        ranked = [_chosen(db, _ranked(db, span, lanes)) for span in spans]
        matches: dict[tuple[Scope, int], Match] = {}
        for found in merge(*ranked, key=_rank):
            if (found.span.scope, found.place) not in matches:
                matches[found.span.scope, found.place] = _match(db, found)
                if len(matches) >= limit:
                    break
    return list(matches.values())


def _ranked(db: sqlite3.Connection, span: SearchSpan, lanes: Sequence[Lane]) -> Iterator[_Found]:
    """The passages that any lane matches, in order."""
    names = _range(db, span)
    if names is None:
        return
    parts: list[str] = []
    for index, lane in enumerate(lanes):
        parts.append(
            f"SELECT rowid AS id, {lane.weight} AS weight, {1 << index} AS bit FROM"
            f" {_matching(lane, index)}"
        )
        names[f"match{index}"] = _expression(lane)
    union = " UNION ALL ".join(parts)
    query = f"SELECT id, SUM(weight), SUM(bit) FROM ({union}) GROUP BY id ORDER BY 2 DESC, id DESC"
    for row in db.execute(query, names):
        yield _Found(span, *row)


def scan(
    db: sqlite3.Connection, span: SearchSpan, limit: int, below: int | None, containing: str
) -> tuple[list[Match], int | None]:
    last = span.last if below is None else min(span.last, below - 1)
    with snapshot(db):
        names = _range(db, span, last)
        if names is None:
            return [], None
        if containing:
            names["match"] = grams(containing)
        rows = db.execute(CONTAINING if containing else NEWEST, names)
        seen = [_Found(span, number) for (number,) in islice(rows, limit)]
        places = {found.place: found for found in seen}
        matches = [_match(db, found) for found in _chosen(db, places.values())]
    return matches, seen[-1].place if len(seen) == limit else None


def _chosen(db: sqlite3.Connection, found: Iterable[_Found]) -> Iterator[_Found]:
    """Those whose rows are to be found, with what their rows say."""
    source = iter(found)
    while batch := list(islice(source, _PLACES_AT_ONCE)):
        span = batch[0].span
        if span.kind is DocumentKind.MESSAGE:
            names = named(
                span.scope,
                places=json.dumps([one.place for one in batch]),
                roles=json.dumps(span.roles),
                revision=span.revision,
                retired=span.retired,
                start_ms=span.start_ms,
                end_ms=span.end_ms,
            )
            rows = {sequence: row for sequence, *row in db.execute(CHOSEN, names)}
            yield from (
                one._replace(row=tuple(rows[one.place])) for one in batch if one.place in rows
            )
        else:
            yield from (one for one in batch if span.places is None or one.place in span.places)


def _match(db: sqlite3.Connection, found: _Found) -> Match:
    text = db.execute(TEXT, {"id": found.id}).fetchone()[0]
    return Match(found.span, found.place, found.id & (MAX_PARTS - 1), text, found.lanes, *found.row)


def _rank(found: _Found) -> tuple[int, int]:
    return -found.weight, -found.place


def _matching(lane: Lane, index: int | None = None) -> str:
    table = "search_grams" if lane.substring else "search_words"
    return f"{table} WHERE {table} MATCH :match{'' if index is None else index} AND rowid {_RANGE}"


def _expression(lane: Lane) -> str:
    return grams(lane.text) if lane.substring else phrase(lane.text)


def _range(
    db: sqlite3.Connection, span: SearchSpan, last: int | None = None
) -> dict[str, Any] | None:
    """The numbers of the span's passages; None where there can be none."""
    last = min(span.last if last is None else last, MAX_PLACE)
    number = number_of(db, span.scope) if span.first <= last else None
    if number is None:
        return None
    return {
        "low": passage_id(number, span.kind, max(0, span.first)),
        "high": passage_id(number, span.kind, last, MAX_PARTS - 1),
    }
