"""Look-ups in the search index. Each stays within the numbers of one session, and reads the rows it
answers under its scope.

Between any two rows of an answer this thread gives up the interpreter and waits for it again, which
beside a busy event loop is what a look-up costs. So what may be many rows comes as one, as JSON.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from .passages import PART_BITS, Numbered, number_of, passage_id
from .reads import snapshot

_HELD = 4_000
"""Passages of a lane that are kept from counting it to ranking it: 0.1 ms to weigh for a hundred,
where the database takes three times as long to find them again. More of them it weighs better
itself, since it lets others run meanwhile."""


_KEPT_CHARS = 8_000_000
"""Characters of passages that are kept in memory, and what stands for what is beside a text."""
_BESIDE_TEXT = 300

Said = tuple[str, int, int | None, str, int]
"""What a passage says, and the role, time, host id and first revision of its message."""


class Kept:
    """Messages' passages that were looked up of late. Who searches a session searches it again: to
    read them another time is the dearest part of a look-up. They do not change: what is indexed
    anew is so under another number, and who erases or renews says so here (`clear`).

    Readers' threads use it side by side.
    """

    def __init__(self, most: int = _KEPT_CHARS) -> None:
        self.size = 0
        """Of what is kept, in characters, about."""
        self._most, self._lock = most, threading.Lock()
        self._of: dict[tuple[Scope, Numbered], dict[int, Said]] = {}
        """By session as the index knows it; the one that was used last stands last."""
        self._cleared = 0

    def of(self, scope: Scope, number: Numbered) -> tuple[int, Mapping[int, Said]]:
        """What is kept of a session by id, and what to give `add` with more of it."""
        with self._lock:
            known = self._of.pop((scope, number), None)
            if known is not None:
                self._of[scope, number] = known
            return self._cleared, known or {}

    def add(self, scope: Scope, number: Numbered, since: int, said: Mapping[int, Said]) -> None:
        """Keeps what was read after `of` answered `since`, unless all was given up meanwhile. For
        what has no room the session goes that was used longest ago."""
        with self._lock:
            if since != self._cleared:
                return
            known = self._of.setdefault((scope, number), {})
            new = {id: one for id, one in said.items() if id not in known}
            known.update(new)
            self.size += _room(new)
            while self.size > self._most:
                self.size -= _room(self._of.pop(next(iter(self._of))))

    def clear(self) -> None:
        """Gives all up."""
        with self._lock:
            self._of.clear()
            self.size = 0
            self._cleared += 1


def _room(said: Mapping[int, Said]) -> int:
    return sum(len(text) + _BESIDE_TEXT for text, *_ in said.values())


@dataclass(slots=True)
class _Range:
    """Where one span is looked up."""

    span: SearchSpan
    number: Numbered
    names: dict[str, Any]
    """The numbers of its passages."""
    held: dict[tuple[str, bool], list[int]] = field(default_factory=dict)
    """By text and kind of a lane that was counted, the passages that it matches, where these are
    few."""

    def ids(self, lane: Lane) -> list[int] | None:
        """The passages that a lane matches, where they are held."""
        return self.held.get((lane.text, lane.substring))


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
SAID = f"""
    SELECT json_group_array(json_array(id, text, role, time_ms, host_id, created_revision)) FROM
    {_IDS} CROSS JOIN messages ON {_SCOPE} AND sequence = (id >> {PART_BITS} & {MAX_PLACE})
"""
"""These passages, with what their messages' rows say for good."""
RETIRED = f"SELECT 1 FROM messages WHERE {_SCOPE} AND retired_revision > 0 LIMIT 1"
TEXTS = f"SELECT json_group_array(json_array(id, text, 0, NULL, '')) FROM {_IDS}"
NEWEST = f"SELECT id FROM search_documents WHERE id {_RANGE} ORDER BY id DESC"
CONTAINING = (
    f"SELECT rowid FROM search_grams WHERE search_grams MATCH :match AND rowid {_RANGE} ORDER BY"
    " rowid DESC"
)


def look(
    db: sqlite3.Connection, kept: Kept, spans: Sequence[SearchSpan], asking: Asking, limit: int
) -> list[Match]:
    with snapshot(db):
        ranges = _ranges(db, spans)
        try:
            lanes = next(asking)
            while True:
                lanes = asking.send(_counted(db, ranges, lanes))
        except StopIteration as asked:
            return _found(db, kept, ranges, asked.value[:MAX_LANES], limit)


def find(
    db: sqlite3.Connection,
    kept: Kept,
    spans: Sequence[SearchSpan],
    lanes: Sequence[Lane],
    limit: int,
) -> list[Match]:
    with snapshot(db):
        return _found(db, kept, _ranges(db, spans), lanes, limit)


def _counted(db: sqlite3.Connection, ranges: Sequence[_Range], lanes: Sequence[Lane]) -> list[int]:
    counts = [0] * len(lanes)
    for one in ranges if lanes else ():
        few = f"(SELECT json_group_array(rowid) FROM (SELECT rowid FROM {{}} LIMIT {_HELD + 1}))"
        for lane, found in zip(lanes, _of_lanes(db, one, few, lanes), strict=True):
            ids = orjson.loads(found)
            if len(ids) <= _HELD:
                one.held[lane.text, lane.substring] = ids
        many = [lane for lane in lanes if one.ids(lane) is None]
        numbers = iter(_of_lanes(db, one, "(SELECT COUNT(*) FROM {})", many) if many else ())
        for index, lane in enumerate(lanes):
            held = one.ids(lane)
            counts[index] += next(numbers) if held is None else len(held)
    return counts


def _of_lanes(
    db: sqlite3.Connection, one: _Range, column: str, lanes: Sequence[Lane]
) -> Sequence[Any]:
    """A value for each lane: `column`, of what the lane matches, which stands for `{}` in it."""
    columns = (column.format(_matching(lane, index)) for index, lane in enumerate(lanes))
    matches = {f"match{index}": _expression(lane) for index, lane in enumerate(lanes)}
    found: Sequence[Any] = db.execute(
        f"SELECT {', '.join(columns)}", one.names | matches
    ).fetchone()
    return found


def _found(
    db: sqlite3.Connection, kept: Kept, ranges: Sequence[_Range], lanes: Sequence[Lane], limit: int
) -> list[Match]:
    if not lanes or not limit:
        return []
    ranked = [_ranked(db, kept, one, lanes, limit) for one in ranges]
    best: dict[tuple[Scope, int], Match] = {}
    for _, _, match in ranked[0] if len(ranked) == 1 else merge(*ranked, key=_ORDER):
        best.setdefault((match.span.scope, match.place), match)
        if len(best) >= limit:
            break
    return list(best.values())


def _ranked(
    db: sqlite3.Connection, kept: Kept, one: _Range, lanes: Sequence[Lane], limit: int
) -> Iterator[tuple[int, int, Match]]:
    """The passages that any lane matches, in order, behind what orders them."""
    whole = all(one.ids(lane) is not None for lane in lanes)
    order = _weighed(one, lanes) if whole else None
    # More are seldom wanted: where rows that match are not asked for.
    many, behind = limit, 0
    while True:
        if order is None:
            rows = _heaviest(db, one, lanes, many, behind)
        else:
            rows = order[behind : behind + many]
        held = _said(db, kept, one, [-id for _, id, _ in rows]) if rows else {}
        for weight, id, bits in rows:
            row = held.get(-id)
            if row is not None:
                match = _match(one.span, -id, row, bits)
                yield weight, -match.place, match
        if len(rows) < many:
            break
        behind, many = behind + many, 4 * many


_Weighed = list[tuple[int, int, int]]
"""Passages, the heaviest first and of equals the newest: weight and number, both negative, and the
lanes that match."""


def _weighed(one: _Range, lanes: Sequence[Lane]) -> _Weighed:
    """All that these lanes match, where it is held."""
    both: dict[int, int] = {}  # the weight of a passage, and below it the bits of its lanes
    for index, lane in enumerate(lanes):
        more = lane.weight << MAX_LANES | 1 << index
        for id in one.ids(lane) or ():
            both[id] = both.get(id, 0) + more
    bits = (1 << MAX_LANES) - 1
    return sorted([(-(known >> MAX_LANES), -id, known & bits) for id, known in both.items()])


def _heaviest(
    db: sqlite3.Connection, one: _Range, lanes: Sequence[Lane], many: int, behind: int
) -> _Weighed:
    """So many of what these lanes match, behind the first ones."""
    parts: list[str] = []
    names = one.names | {"many": many, "behind": behind}
    for index, lane in enumerate(lanes):
        parts.append(
            f"SELECT rowid AS id, :weight{index} AS weight, {1 << index} AS bit FROM"
            f" {_matching(lane, index)}"
        )
        names |= {f"match{index}": _expression(lane), f"weight{index}": lane.weight}
    union = " UNION ALL ".join(parts)
    query = (
        "SELECT json_group_array(json_array(-weight, -id, bits)) FROM (SELECT id, SUM(weight) AS"
        f" weight, SUM(bit) AS bits FROM ({union}) GROUP BY id ORDER BY 2 DESC, id DESC LIMIT :many"
        " OFFSET :behind)"
    )
    # SQLite does not promise the order within an array.
    return sorted(tuple(row) for row in orjson.loads(db.execute(query, names).fetchone()[0]))


def scan(
    db: sqlite3.Connection, span: SearchSpan, limit: int, below: int | None, containing: str
) -> tuple[list[Match], int | None]:
    last = span.last if below is None else min(span.last, below - 1)
    with snapshot(db):
        found = _range(db, span, last)
        if found is None:
            return [], None
        names = found.names
        if containing:
            names["match"] = grams(containing)
        rows = db.execute(CONTAINING if containing else NEWEST, names)
        seen = [number for (number,) in islice(rows, limit)]
        places = {_place(id): id for id in seen}  # of each the first passage, which is its lowest
        held = _read(db, span, list(places.values()))
    matches = [_match(span, id, held[id]) for id in places.values() if id in held]
    return matches, _place(seen[-1]) if len(seen) == limit else None


def _said(
    db: sqlite3.Connection, kept: Kept, one: _Range, ids: Sequence[int]
) -> Mapping[int, Sequence[Any]]:
    """As `_read`, of which nothing is read that is kept."""
    span = one.span
    if span.kind is not DocumentKind.MESSAGE:
        return _read(db, span, ids)
    # What was retired, and when, is the one thing of a message that changes.
    if not span.retired and db.execute(RETIRED, named(span.scope)).fetchone():
        return _read(db, span, ids)
    since, known = kept.of(span.scope, one.number)
    said = {id: known[id] for id in ids if id in known}
    if unknown := [id for id in ids if id not in said]:
        rows = db.execute(SAID, named(span.scope, ids=json.dumps(unknown))).fetchone()[0]
        new = {id: (*row,) for id, *row in orjson.loads(rows)}
        kept.add(span.scope, one.number, since, new)
        said |= new
    revision = span.revision
    if not span.roles and span.start_ms is None and span.end_ms is None:
        return {id: row for id, row in said.items() if row[4] <= revision}
    return {
        id: row
        for id, row in said.items()
        if row[4] <= revision and _asked_for(span, row[1], row[2])
    }


def _asked_for(span: SearchSpan, role: int, time_ms: int | None) -> bool:
    """What MESSAGES asks of a role and a time."""
    if span.roles and role not in span.roles:
        return False
    if span.start_ms is not None and (time_ms is None or time_ms < span.start_ms):
        return False
    return span.end_ms is None or (time_ms is not None and time_ms < span.end_ms)


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
    part = id & (MAX_PARTS - 1)
    return Match(span, _place(id), part, row[0], lanes, row[1], row[2], row[3])


def _place(id: int) -> int:
    return id >> PART_BITS & MAX_PLACE


def _matching(lane: Lane, index: int) -> str:
    table = "search_grams" if lane.substring else "search_words"
    return f"{table} WHERE {table} MATCH :match{index} AND rowid {_RANGE}"


def _expression(lane: Lane) -> str:
    return grams(lane.text) if lane.substring else phrase(lane.text)


def _ranges(db: sqlite3.Connection, spans: Sequence[SearchSpan]) -> list[_Range]:
    """The spans that hold anything."""
    return [found for span in spans if (found := _range(db, span)) is not None]


def _range(db: sqlite3.Connection, span: SearchSpan, last: int | None = None) -> _Range | None:
    """The numbers of the span's passages; None where there can be none."""
    last = min(span.last if last is None else last, MAX_PLACE)
    known = number_of(db, span.scope) if span.first <= last else None
    if known is None:
        return None
    names = {
        "low": passage_id(known.number, span.kind, max(0, span.first)),
        "high": passage_id(known.number, span.kind, last, MAX_PARTS - 1),
    }
    return _Range(span, known, names)
