"""Pieces that statements are made of."""

from __future__ import annotations

from collections.abc import Sequence

SESSION = "tenant = :tenant AND agent = :agent AND session = :session"
"""The rows of one session."""

PARENT = "tenant = :tenant AND parent_agent = :agent AND parent_session = :session"
"""The rows of what one session spawned."""


def insert(table: str, columns: Sequence[str]) -> str:
    """One row, bound by position in the order of the columns."""
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' for _ in columns)})"


def select(table: str, columns: Sequence[str]) -> str:
    """Whole rows of a table."""
    return f"SELECT {', '.join(columns)} FROM {table}"
