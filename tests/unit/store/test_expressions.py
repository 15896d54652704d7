"""What is sought as FTS5 is asked for it: no text makes it fail, whatever it holds."""

from __future__ import annotations

import sqlite3

import pytest

from contextengine_server.store.sqlite.expressions import grams, phrase

ODD = [
    'say "hi"',
    "nul\0within",
    '"',
    "\0",
    '"\0"',
    "NEAR(a b)",
    "a AND",
    "col:umn",
    "*",
    "^a",
    "'",
]


@pytest.fixture
def index() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
    db.execute("CREATE VIRTUAL TABLE grams USING fts5(text, tokenize='trigram')")
    return db


def found(db: sqlite3.Connection, table: str, expression: str) -> list[int]:
    asked = f"SELECT rowid FROM {table} WHERE {table} MATCH ?"
    return [row for (row,) in db.execute(asked, (expression,))]


def test_words_are_found_in_their_order_through_what_fts5_cannot_read(
    index: sqlite3.Connection,
) -> None:
    for text in ("he would say hi there", "hi he would say"):
        index.execute("INSERT INTO words (text) VALUES (?)", (text,))
    for text in ("say hi", 'say "hi"', "say\0hi", '"say\0" hi'):
        assert found(index, "words", phrase(text)) == [1], text


@pytest.mark.parametrize("text", ODD)
def test_no_text_fails(index: sqlite3.Connection, text: str) -> None:
    found(index, "words", phrase(text))
    if len(text) >= 3:
        found(index, "grams", grams(text))


def test_every_part_of_three_characters_is_asked_for_once() -> None:
    assert grams("abc") == '"abc"'
    assert grams("abcd") == '"abc" AND "bcd"'
    assert grams("aaaaa") == '"aaa"'
    assert grams('a"bc') == '"a""b" AND """bc"'
    assert grams("ab\0cd") == '"ab " AND "b c" AND " cd"'


def test_of_a_long_text_the_first_parts_are_asked_for() -> None:
    text = "".join(chr(0x4E00 + at) for at in range(100))
    asked = grams(text).split(" AND ")
    assert asked == [f'"{text[at : at + 3]}"' for at in range(24)]
