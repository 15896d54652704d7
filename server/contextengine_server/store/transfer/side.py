"""What a kind of store offers to whoever copies from it or into it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from .tables import Row

Key = tuple[str, str, str]
"""Tenant, agent and session."""

Lives = Mapping[Key, str]
"""Sessions, each with the incarnation that is meant."""


class CopySource(Protocol):
    """A database as it is at one moment, whatever is written to it meanwhile."""

    def heads(self) -> AsyncIterator[list[Row]]:
        """The heads of all sessions, in pages and in an order of its own; without those of imports
        that are under way."""
        ...

    async def head(self, key: Key) -> Row | None:
        """The head of one session."""
        ...

    def rows(self, table: str, lives: Lives | None) -> AsyncIterator[list[Row]]:
        """Rows of some sessions, or (None) of a whole table, in pages: those of one session
        together, in the order of their keys."""
        ...


class CopyTarget(CopySource, Protocol):
    """A database that nobody else works with, as it is now."""

    def transaction(self) -> AbstractAsyncContextManager[None]:
        """All that is done in it is done as one, and durable at its end."""
        ...

    async def erase(self, table: str, lives: Lives | None) -> None:
        """Takes away rows of some sessions, or (None) all of a table."""
        ...

    async def insert(self, table: str, rows: Sequence[Row], lives: Lives) -> None:
        """Adds rows. `lives` knows the sessions of those that hang on a life."""
        ...

    async def empty(self) -> None:
        """Takes away all that is stored."""
        ...

    async def forget(self, lives: Lives) -> None:
        """Has what search made of some sessions erased."""
        ...

    async def mark(self, part: str) -> str:
        """What was noted of a part of the copy; empty: nothing."""
        ...

    async def note(self, part: str, mark: str) -> None:
        """Notes how a part was copied; an empty mark: it is none any more."""
        ...
