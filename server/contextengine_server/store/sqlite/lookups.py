"""Look-ups in the search index. Each stays within the numbers of one session, and reads the rows it
answers under its scope.

Between any two rows of an answer this thread gives up the interpreter and waits for it again, which
beside a busy event loop is what a look-up costs. So what may be many rows comes as one, as JSON.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import Any

import orjson

from contextengine_server.context.scope import Scope
from contextengine_server.store.search import (
    MAX_LANES,
    MAX_PARTS,
    MAX_PLACE,
    Asking,
    DocumentKind,
    Lane,
    Match,
    SearchSpan,
)
from contextengine_server.store.sql.columns import named

from .expressions import grams, phrase
from .passages import PART_BITS, number_of, passage_id
from .reads import snapshot

_Ranges = Sequence[tuple[SearchSpan, dict[str, Any]]]

_ORDER = itemgetter(0, 1)
_SCOPE = "tenant = :tenant AND agent = :agent AND session = :session"
_RANGE = "BETWEEN :low AND :high"
_IDS = "(SELECT value AS id FROM json_each(:ids)) CROSS JOIN search_documents USING (id)"
MESSAGES = f"""
    SELECT json_group_array(json_array(id, text, role, time_ms, host_id)) FROM {_IDS}
    CROSS JOIN messages ON {_SCOPE} AND sequence = (id >> {PART_BITS} & {MAX_PLACE})
    WHERE created_revision <= :revision
    AND (:retired OR retired_revision = 0 OR retired_revision > :revision)
    AND (:roles = '[]' OR role IN (SELECT value FROM json_each(:roles)))
    AND (:start_ms IS NULL OR time_ms >= :start_ms) AND (:end_ms IS NULL OR time_ms < :end_ms)
"""
"""The passages that stand for a message which is asked for, with what its row says."""
TEXTS = f"SELECT json_group_array(json_array(id, text, 0, NULL, '')) FROM {_IDS}"
NEWEST = f"SELECT id FROM search_documents WHERE id {_RANGE} ORDER BY id DESC"
CONTAINING = (
    f"SELECT rowid FROM search_grams WHERE search_grams MATCH :match AND rowid {_RANGE} ORDER BY"
    " rowid DESC"
)


def look(
    db: sqlite3.Connection, spans: Sequence[SearchSpan], asking: Asking, limit: int
) -> list[Match]:
    with snapshot(db):
        ranges = _ranges(db, spans)
        try:
            lanes = next(asking)
            while True:
                lanes = asking.send(_counted(db, ranges, lanes))
        except StopIteration as asked:
            return _found(db, ranges, asked.value[:MAX_LANES], limit)


def find(
    db: sqlite3.Connection, spans: Sequence[SearchSpan], lanes: Sequence[Lane], limit: int
) -> list[Match]:
    with snapshot(db):
        return _found(db, _ranges(db, spans), lanes, limit)


def _counted(db: sqlite3.Connection, ranges: _Ranges, lanes: Sequence[Lane]) -> list[int]:
    counts = [0] * len(lanes)
    numbers = ", ".join(
        f"(SELECT COUNT(*) FROM {_matching(lane, index)})" for index, lane in enumerate(lanes)
    )
    matches = {f"match{index}": _expression(lane) for index, lane in enumerate(lanes)}
    for _, names in ranges if lanes else ():
        found = db.execute(f"SELECT {numbers}", names | matches).fetchone()
        counts = [known + more for known, more in zip(counts, found, strict=True)]
    return counts


def _found(
    db: sqlite3.Connection, ranges: _Ranges, lanes: Sequence[Lane], limit: int
) -> list[Match]:
    if not lanes or not limit:
        return []
    ranked = [_ranked(db, span, names, lanes, limit) for span, names in ranges]
    best: dict[tuple[Scope, int], Match] = {}
    for _, _, match in ranked[0] if len(ranked) == 1 else merge(*ranked, key=_ORDER):
        best.setdefault((match.span.scope, match.place), match)
        if len(best) >= limit:
            break
    return list(best.values())


def _ranked(
    db: sqlite3.Connection,
    span: SearchSpan,
    names: dict[str, Any],
    lanes: Sequence[Lane],
    limit: int,
) -> Iterator[tuple[int, int, Match]]:
    """The passages that any lane matches, in order, behind what orders them."""
    parts: list[str] = []
    for index, lane in enumerate(lanes):
        parts.append(
            f"SELECT rowid AS id, :weight{index} AS weight, {1 << index} AS bit FROM"
            f" {_matching(lane, index)}"
        )
        names = names | {f"match{index}": _expression(lane), f"weight{index}": lane.weight}
    union = " UNION ALL ".join(parts)
    query = (
        "SELECT json_group_array(json_array(id, weight, bits)) FROM (SELECT id, SUM(weight) AS"
        f" weight, SUM(bit) AS bits FROM ({union}) GROUP BY id ORDER BY 2 DESC, id DESC LIMIT :many"
        " OFFSET :behind)"
    )
    # More are seldom wanted: where rows that match are not asked for.
    names = names | {"many": limit, "behind": 0}
    while rows := orjson.loads(db.execute(query, names).fetchone()[0]):
        rows.sort(key=_heaviest)  # SQLite does not promise the order within an array
        held = _read(db, span, [row[0] for row in rows])
        for id, weight, bits in rows:
            if id in held:
                match = _match(span, id, held[id], bits)
                yield -weight, -match.place, match
        if len(rows) < names["many"]:
            break
        names |= {"behind": names["behind"] + names["many"], "many": 4 * names["many"]}


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
        seen = [number for (number,) in islice(rows, limit)]
        places = {_place(id): id for id in seen}  # of each the first passage, which is its lowest
        held = _read(db, span, list(places.values()))
    matches = [_match(span, id, held[id]) for id in places.values() if id in held]
    return matches, _place(seen[-1]) if len(seen) == limit else None


def _read(db: sqlite3.Connection, span: SearchSpan, ids: Sequence[int]) -> dict[int, list[Any]]:
    """By id, the text of those of these passages that are asked for, and the role, time and host id
    of their messages."""
    if span.kind is DocumentKind.MESSAGE:
        names = named(
            span.scope,
            ids=json.dumps(ids),
            roles=json.dumps(span.roles),
            revision=span.revision,
            retired=span.retired,
            start_ms=span.start_ms,
            end_ms=span.end_ms,
        )
        rows = db.execute(MESSAGES, names).fetchone()[0]
    else:
        chosen = [id for id in ids if span.places is None or _place(id) in span.places]
        rows = db.execute(TEXTS, {"ids": json.dumps(chosen)}).fetchone()[0]
    return {id: row for id, *row in orjson.loads(rows)}


def _match(span: SearchSpan, id: int, row: Sequence[Any], lanes: int = 0) -> Match:
    text, role, time_ms, host_id = row
    return Match(span, _place(id), id & (MAX_PARTS - 1), text, lanes, role, time_ms, host_id)


def _place(id: int) -> int:
    return id >> PART_BITS & MAX_PLACE


def _heaviest(row: Sequence[int]) -> tuple[int, int]:
    return -row[1], -row[0]


def _matching(lane: Lane, index: int) -> str:
    table = "search_grams" if lane.substring else "search_words"
    return f"{table} WHERE {table} MATCH :match{index} AND rowid {_RANGE}"


def _expression(lane: Lane) -> str:
    return grams(lane.text) if lane.substring else phrase(lane.text)


def _ranges(db: sqlite3.Connection, spans: Sequence[SearchSpan]) -> _Ranges:
    """The spans that hold anything, each with the numbers of its passages."""
    found = ((span, _range(db, span)) for span in spans)
    return [(span, names) for span, names in found if names is not None]


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
