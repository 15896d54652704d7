"""What is found does not depend on the store: our own words are those of SQLite's FTS5."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextengine_server.store.memory.passages import finder
from contextengine_server.store.memory.passages import passage as read
from contextengine_server.store.search import Lane
from contextengine_server.store.sqlite.expressions import grams, phrase
from contextengine_server.store.sqlite.passages import TABLES
from contextengine_server.store.words import spread, stems

TEXTS = st.text(
    st.sampled_from("abcdeginorstuy ABÉÜñçøß 0123456789 _-./:'\"*()\n天气模型タワー京が학교에й😀"),
    max_size=40,
)
WORDS = sorted(
    {
        word
        for line in (Path(__file__).parents[2] / "data" / "coding_session.pi.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()[:60]
        for word in re.findall(r"[A-Za-z]{3,14}", line)
    }
)


@pytest.fixture(scope="module")
def fts() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:")
    for statement in TABLES.values():
        db.execute(statement)
    return db


def found_by_fts(db: sqlite3.Connection, text: str, query: str, *, substring: bool) -> bool:
    db.execute("BEGIN")
    try:
        db.execute("INSERT INTO search_words (rowid, text) VALUES (1, ?)", (spread(text),))
        db.execute("INSERT INTO search_grams (rowid, text) VALUES (1, ?)", (text,))
        table = "search_grams" if substring else "search_words"
        sought = grams(query) if substring else phrase(query)
        select = f"SELECT rowid FROM {table} WHERE {table} MATCH ?"
        return db.execute(select, (sought,)).fetchone() is not None
    finally:
        db.execute("ROLLBACK")


@given(text=TEXTS, start=st.integers(0, 40), length=st.integers(0, 12), other=TEXTS)
@settings(max_examples=600, deadline=None)
def test_what_fts_finds_is_found(
    fts: sqlite3.Connection, text: str, start: int, length: int, other: str
) -> None:
    for query in (text[start : start + length], other):
        found = finder(Lane(query))(read(text))
        assert found == found_by_fts(fts, text, query, substring=False), (text, query)
        if len(query) >= 3 and finder(Lane(query, substring=True))(read(text)):
            assert found_by_fts(fts, text, query, substring=True), (text, query)


def test_stems_are_those_of_fts(fts: sqlite3.Connection) -> None:
    """Over every word of a coding session, put into one text."""
    assert len(WORDS) > 300
    fts.execute("BEGIN")
    fts.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(search_words, instance)")
    fts.execute("INSERT INTO search_words (rowid, text) VALUES (1, ?)", (" ".join(WORDS),))
    told = [term for (term,) in fts.execute("SELECT term FROM stems ORDER BY offset")]
    fts.execute("ROLLBACK")
    assert stems(" ".join(WORDS)) == told


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("Müller", "muller", True),
        ("mu\u0308ller", "müller", True),
        ("が", "か", False),
        ("й", "и", False),
        ("running", "runs", True),
        ("as", "a", False),
    ],
)
def test_words_are_alike_but_for_accents_of_latin_letters(
    one: str, other: str, alike: bool
) -> None:
    assert (stems(one) == stems(other)) is alike
    assert stems("") == []
