"""The search index in SQLite: a table of passages and two FTS5 indexes of it, one of words and one
of trigrams.

A passage's number says it all: the session's number in the index, the kind, the place and the part.
So a session is a range of numbers, every look-up stays within one, and what it costs does not
depend on what other sessions hold. Ranking is left to the caller: FTS5's own would count the words
of all tenants.

The text is kept beside the indexes because FTS5 can only take out what it is told again. All three
tables are derived data: where they are not as they should be, they are made anew and filled from
the cursors.

FTS5 folds its segments when it likes, for up to 50 ms. Here that is switched off and done in pieces
of a few ms (`tidy`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.rows import SummaryRow
from contextengine_server.store.search import (
    MAX_PARTS,
    MAX_PLACE,
    Advance,
    Cursor,
    DocumentKind,
    Progress,
)
from contextengine_server.store.sql import columns
from contextengine_server.store.sql.clauses import select
from contextengine_server.store.sql.columns import SUMMARY, named
from contextengine_server.store.words import spread

from .disk import purge
from .reads import snapshot
from .statements import SQL

TABLES = {
    "search_documents": (
        "CREATE TABLE search_documents /* 2: with names */"
        " (id INTEGER PRIMARY KEY, text TEXT NOT NULL)"
    ),
    "search_words": (
        "CREATE VIRTUAL TABLE search_words USING fts5"
        "(text, content='', columnsize=0, tokenize='porter unicode61 remove_diacritics 2')"
    ),
    "search_grams": (
        "CREATE VIRTUAL TABLE search_grams USING fts5"
        "(text, content='', columnsize=0, detail='none', tokenize='trigram')"
    ),
}
"""Another text here makes the index anew. So must another way to make or cut texts: number it in a
comment."""

FTS = ("search_words", "search_grams")
FOLD_AFTER = 4
"""Writes until segments are folded; also how many segments of a level are folded together, which is
FTS5's own number. Each look-up goes through every segment: with 16 of a level a search took a third
of a millisecond more, and writing was not seen to take less."""
_OPTIONS = {"automerge": 0, "usermerge": FOLD_AFTER, "crisismerge": 1_000}
_FOLD_PAGES = 4
"""Pages written by one piece of folding: 1 ms, at most 5."""
_ERASED_AT_ONCE = 16_000
"""Characters erased by one piece of upkeep, about: a few ms."""

PART_BITS = (MAX_PARTS - 1).bit_length()
_PLACE_BITS = MAX_PLACE.bit_length()
_NUMBER_SHIFT = PART_BITS + _PLACE_BITS + 1

_CURSOR = "number, sequence, parts, summaries, revision"
_SCOPE = "tenant = :tenant AND agent = :agent AND session = :session"
_LIFE = f"{_SCOPE} AND incarnation = :incarnation"
HEAD = f"SELECT incarnation, revision FROM sessions WHERE {_SCOPE}"
CURSOR = f"SELECT {_CURSOR} FROM search_cursors WHERE {_LIFE}"
NUMBER = f"""
    SELECT number, incarnation FROM search_cursors WHERE {_SCOPE} AND incarnation = (SELECT
    incarnation FROM sessions WHERE {_SCOPE})
"""
PROGRESS = f"""
    SELECT incarnation, sessions.revision, (SELECT MIN(sequence) FROM messages WHERE {_SCOPE}),
    (SELECT MAX(sequence) FROM messages WHERE {_SCOPE}),
    (SELECT COUNT(*) FROM summaries WHERE {_SCOPE}), search_cursors.sequence, parts, summaries,
    search_cursors.revision
    FROM sessions LEFT JOIN search_cursors USING (tenant, agent, session, incarnation)
    WHERE {_SCOPE} AND archived = ''
"""
SUMMARIES = (
    f"{select('summaries', SUMMARY)} WHERE {_SCOPE} ORDER BY created_revision, id"
    " LIMIT -1 OFFSET :skip"
)
REMADE = f"SELECT remakes, generation FROM summaries WHERE {_SCOPE} AND remakes != ''"
"""Those that never come back, since what was made in their place has their generation."""
BEHIND = """
    SELECT tenant, agent, session FROM sessions LEFT JOIN search_cursors USING (tenant, agent,
    session, incarnation)
    WHERE sessions.revision > COALESCE(search_cursors.revision, 0) AND sessions.archived = ''
    LIMIT :limit
"""
NEW_NUMBER = f"""
    SELECT MAX(COALESCE(MAX(number), 0), COALESCE((SELECT MAX(id) FROM search_documents), 0)
    >> {_NUMBER_SHIFT}) + 1 FROM search_cursors
"""
"""None that a passage has either: where a cursor was lost, those of its session are there still."""
ADD_CURSOR = f"""
    INSERT INTO search_cursors (tenant, agent, session, incarnation, {_CURSOR}, doomed)
    VALUES (:tenant, :agent, :session, :incarnation, :number, :sequence, :parts, :summaries,
    :revision, 0)
"""
MOVE_CURSOR = f"""
    UPDATE search_cursors SET sequence = :sequence, parts = :parts, summaries = :summaries,
    revision = :revision
    WHERE {_LIFE}
"""
DOOM = f"UPDATE search_cursors SET doomed = 1 WHERE {_SCOPE}"
"""What a deletion says, in its own transaction. The number is taken again only after its passages
are gone."""
RENEW = f"""
    UPDATE search_cursors SET doomed = 1, incarnation = incarnation || '#' || number WHERE {_SCOPE}
    AND doomed = 0
"""
"""No session has an incarnation with such a sign in it."""
DOOMED = "SELECT number FROM search_cursors WHERE doomed = 1 ORDER BY number LIMIT 1"
FORGET = "DELETE FROM search_cursors WHERE number = :number"
START_ANEW = "UPDATE search_cursors SET sequence = 0, parts = 0, summaries = 0, revision = 0"

SIZE = """
    SELECT COALESCE(SUM(LENGTH(CAST(text AS BLOB))), 0) FROM search_documents WHERE id BETWEEN :low
    AND :high
"""
PASSAGES = "SELECT id, text FROM search_documents WHERE id BETWEEN :low AND :high ORDER BY id"


def prepare(db: sqlite3.Connection) -> bool:
    """Makes the tables of the index where they are not as they should be. False: they cannot be
    had, because this SQLite has no FTS5 or the file is damaged there. That is no reason not to
    start."""
    try:
        purge.prepare(db)
        if not _sound(db):
            _make(db)
        elif _options(db) != _OPTIONS:  # those of a server of before
            _configure(db)
        return True
    except sqlite3.DatabaseError:
        if db.in_transaction:
            db.execute("ROLLBACK")
        # The passages go, so that nothing is kept which could not be erased; once it can be, all is
        # made anew.
        with suppress(sqlite3.DatabaseError):
            db.execute("DROP TABLE IF EXISTS search_documents")
        return False


def _sound(db: sqlite3.Connection) -> bool:
    names = ", ".join(f"'{name}'" for name in TABLES)
    if dict(db.execute(f"SELECT name, sql FROM sqlite_master WHERE name IN ({names})")) != TABLES:
        return False
    try:
        for name in FTS:
            db.execute(f"SELECT rowid FROM {name} WHERE {name} MATCH 'one'").fetchone()
    except sqlite3.DatabaseError:
        return False
    return True


def _make(db: sqlite3.Connection) -> None:
    db.execute("BEGIN IMMEDIATE")
    for name in TABLES:
        _remove(db, name)
    for statement in TABLES.values():
        db.execute(statement)
    _configure(db)
    db.execute(START_ANEW)
    db.execute("COMMIT")


def _configure(db: sqlite3.Connection) -> None:
    for name in FTS:
        for option, value in _OPTIONS.items():
            db.execute(f"INSERT INTO {name} ({name}, rank) VALUES ('{option}', {value})")


def _options(db: sqlite3.Connection) -> dict[str, int]:
    """Those of the options that both indexes have."""
    both = " INTERSECT ".join(f"SELECT k, v FROM {name}_config" for name in FTS)
    return {option: value for option, value in db.execute(both) if option in _OPTIONS}


def _remove(db: sqlite3.Connection, name: str) -> None:
    try:
        db.execute(f"DROP TABLE IF EXISTS {name}")
    except sqlite3.DatabaseError:
        # A damaged index cannot be opened, not even to drop it: its parts are ordinary tables, its
        # name is a row.
        for part in ("data", "idx", "docsize", "config"):
            db.execute(f"DROP TABLE IF EXISTS {name}_{part}")
        db.execute("PRAGMA writable_schema = ON")
        db.execute("DELETE FROM sqlite_master WHERE name = ?", (name,))
        db.execute("PRAGMA writable_schema = RESET")


def doom(db: sqlite3.Connection, scope: Scope) -> None:
    """Gives the session's passages up to erasure."""
    db.execute(DOOM, named(scope))


def renew(db: sqlite3.Connection, scope: Scope) -> None:
    """Gives the session's passages up to erasure; its next begin under another number."""
    db.execute(RENEW, named(scope))


def progress(db: sqlite3.Connection, scope: Scope) -> Progress | None:
    """The session's cursor, and what there is to be indexed: of one state, since it is one
    statement."""
    found = db.execute(PROGRESS, named(scope)).fetchone()
    if found is None:
        return None
    incarnation, revision, first, last, summaries, *cursor = found
    known = Cursor() if cursor[0] is None else Cursor(*cursor)
    return Progress(known, incarnation, revision, first or 0, last or 0, summaries)


def summaries(db: sqlite3.Connection, scope: Scope, skip: int) -> list[tuple[int, SummaryRow]]:
    """(ordinal, row) of the session's summaries in the order of creation, behind the first `skip`;
    without text for one that another of its generation took the place of."""
    with snapshot(db):
        gone = set(db.execute(REMADE, named(scope)))
        rows = columns.summaries(db.execute(SUMMARIES, named(scope, skip=skip)))
    return [
        (ordinal, replace(row, text="") if (row.id, row.generation) in gone else row)
        for ordinal, row in enumerate(rows, skip)
    ]


class Numbered(NamedTuple):
    """What the index calls a session. A number is given again once all that had it is erased."""

    number: int
    incarnation: str


def number_of(db: sqlite3.Connection, scope: Scope) -> Numbered | None:
    """The session's number in the index."""
    found = db.execute(NUMBER, named(scope)).fetchone() if scope.complete else None
    return None if found is None else Numbered(*found)


def size(db: sqlite3.Connection, scope: Scope) -> int:
    """Bytes of the session's rows, and of the texts that are kept of it here."""
    names = named(scope)
    with snapshot(db):
        taken = sum(int(db.execute(query, names).fetchone()[0]) for query in SQL.heads.sizes)
        known = number_of(db, scope)
        if known is not None:
            number = known.number
            span = {"low": passage_id(number), "high": passage_id(number + 1) - 1}
            taken += int(db.execute(SIZE, span).fetchone()[0])
    return taken


# Writing


def advance(db: sqlite3.Connection, steps: Sequence[Advance]) -> None:
    """Writes documents and moves cursors, of sessions that are as the steps expect them."""
    passages: list[tuple[int, str]] = []
    for step in steps:
        names = named(step.scope, incarnation=step.incarnation)
        head = db.execute(HEAD, names).fetchone()
        if head is None or head[0] != step.incarnation:
            continue
        to = {
            name: getattr(step.after, name)
            for name in ("sequence", "parts", "summaries", "revision")
        }
        found = db.execute(CURSOR, names).fetchone()
        if step.before != (Cursor() if found is None else Cursor(*found[1:])):
            continue
        if found is None:
            number = db.execute(NEW_NUMBER).fetchone()[0]
            db.execute(ADD_CURSOR, {**names, **to, "number": number})
        else:
            number = found[0]
            db.execute(MOVE_CURSOR, {**names, **to})
        passages += [
            (passage_id(number, document.kind, document.place, document.part), document.text)
            for document in step.documents
            if document.place <= MAX_PLACE and document.part < MAX_PARTS
        ]
    passages.sort()  # FTS5 begins another segment wherever a number is lower than the one before it
    db.executemany("INSERT INTO search_documents (id, text) VALUES (?, ?)", passages)
    db.executemany(
        "INSERT INTO search_words (rowid, text) VALUES (?, ?)",
        [(n, spread(t)) for n, t in passages],
    )
    db.executemany("INSERT INTO search_grams (rowid, text) VALUES (?, ?)", passages)


def erase(db: sqlite3.Connection, available: bool) -> None:
    """Erases some passages of one doomed session, and its cursor where none are left."""
    for (number,) in db.execute(DOOMED).fetchall():
        low, high = passage_id(number), passage_id(number + 1) - 1
        passages: list[tuple[int, str]] = []
        size = 0
        for passage in db.execute(PASSAGES, {"low": low, "high": high}) if available else ():
            passages.append(passage)
            size += len(passage[1])
            if size >= _ERASED_AT_ONCE:
                break
        if not passages:
            db.execute(FORGET, {"number": number})
            purge.ask(db)
            continue
        take_out = "INSERT INTO {0} ({0}, rowid, text) VALUES ('delete', ?, ?)"
        db.executemany(take_out.format("search_words"), [(n, spread(t)) for n, t in passages])
        db.executemany(take_out.format("search_grams"), passages)
        db.executemany("DELETE FROM search_documents WHERE id = ?", [(n,) for n, _ in passages])


def fold(db: sqlite3.Connection, table: str) -> bool:
    """Folds a few pages; False where there is nothing to fold (SQLite's own test for that: fewer
    than two changes)."""
    before = db.total_changes
    db.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', {_FOLD_PAGES})")
    return db.total_changes - before >= 2


def passage_id(
    number: int, kind: DocumentKind = DocumentKind.MESSAGE, place: int = 0, part: int = 0
) -> int:
    """What a passage is numbered; without the last, where those of a session, a kind or a place
    begin."""
    return number << _NUMBER_SHIFT | kind << (_NUMBER_SHIFT - 1) | place << PART_BITS | part
