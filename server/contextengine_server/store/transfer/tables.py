"""The tables as all stores that speak SQL have them: what is copied, in what order, and how a row
is hashed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from typing import Any

import msgspec
import sqlalchemy as sa

from contextengine_server.store.sql.schema import metadata

Row = tuple[Any, ...]
"""A row's columns, in the order of the shared table."""

HEADS = "sessions"
OF_SESSIONS = (HEADS, "messages", "summaries")
"""What is copied session by session."""
WHOLE = tuple(
    sorted(name for name in metadata.tables if name not in (*OF_SESSIONS, "search_cursors"))
)
"""What is copied a table at a time: what belongs to agents and tenants, and what waits."""


@cache
def columns(table: str) -> tuple[str, ...]:
    """Their names."""
    return tuple(column.name for column in metadata.tables[table].c)


@cache
def order(table: str) -> tuple[str, ...]:
    """What rows are sorted by, which is the same in every store."""
    return tuple(column.name for column in metadata.tables[table].primary_key)


@cache
def flags(table: str) -> tuple[int, ...]:
    """Where the columns stand that are true or false."""
    found = metadata.tables[table].c
    return tuple(at for at, column in enumerate(found) if isinstance(column.type, sa.Boolean))


def whose(row: Row) -> tuple[str, str, str]:
    """The session of a row of `OF_SESSIONS`: its key comes first."""
    return row[0], row[1], row[2]


INCARNATION, REVISION, COMMIT, LAST = (
    columns(HEADS).index(name) for name in ("incarnation", "revision", "commit_id", "last_sequence")
)
"""Where they stand in a head."""


class Digest:
    """Of rows, in order."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)
        self.rows = 0

    def add(self, table: str, rows: Iterable[Row]) -> None:
        """Takes rows in. Where one column ends and the next begins is a part of what is hashed."""
        for row in rows:
            self._hash.update(msgspec.msgpack.encode((table, row)))
            self.rows += 1

    def said(self) -> str:
        """The digest and the number of rows: equal for equal rows in equal order."""
        return f"{self._hash.hexdigest()} {self.rows}"
