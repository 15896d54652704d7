"""Texts as PostgreSQL takes them, which is all but NUL: hosts send it, and SQLite keeps it.

NUL is written as U+0001 and `0`, U+0001 as itself and `1`. So every text comes back as it was, a
text without either is written as it is, and texts stay in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable

_MARK = "\1"


def written(text: str) -> str:
    """A text as it is stored."""
    if "\0" in text or _MARK in text:
        return text.replace(_MARK, _MARK + "1").replace("\0", _MARK + "0")
    return text


def read(stored: str) -> str:
    """The text that was stored so."""
    if _MARK in stored:
        return stored.replace(_MARK + "0", "\0").replace(_MARK + "1", _MARK)
    return stored


def all_written(texts: Iterable[str | None]) -> list[str | None]:
    """Texts of an array, which the driver writes as they are given."""
    return [None if text is None else written(text) for text in texts]
