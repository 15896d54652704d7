"""What is sought, as FTS5 is asked for it."""

from __future__ import annotations

from contextengine_server.store.words import sought

_GRAMS = 24
"""Trigrams of a query that are looked up: what holds these holds the rest, nearly always, and the
caller looks again."""


def phrase(text: str) -> str:
    """The expression for the words of a text in this order. No text makes it fail."""
    plain, begins = sought(text)
    return f'"{_quotable(plain)}"{" *" if begins else ""}'


def grams(text: str) -> str:
    """The expression for the trigrams of a text of at least three characters."""
    found = dict.fromkeys(text[at : at + 3] for at in range(len(text) - 2))
    return " AND ".join(f'"{_quoted(gram)}"' for gram in list(found)[:_GRAMS])


def _quotable(text: str) -> str:
    return text.replace('"', " ").replace("\0", " ")


def _quoted(text: str) -> str:
    return text.replace('"', '""').replace("\0", " ")
