"""What servers over one database tell each other, and which of them does what one alone should."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from contextengine_server.context.scope import Scope
from contextengine_server.store.feed import Batch


class Feed(Protocol):
    """What servers tell each other, in one order for all of them. Its newest are kept; it is no
    record of anything. What nobody else has open keeps it in memory."""

    async def post(self, count: int, body: bytes) -> None:
        """Adds so many notes at once. Their numbers are above all that were given before, also
        where the database lost the newest of those: they begin with its clock, in microseconds
        since 1970 UTC."""

    async def since(self, number: int, limit: int) -> Sequence[Batch]:
        """The oldest batches that end above a number, in order, at most `limit`. Once one was
        answered, none with a lower number comes."""

    async def posted(self, seconds: float) -> None:
        """Returns where something may have been posted since this was last called, by anybody, and
        else after this time."""

    async def trim(self, keep_ms: int) -> None:
        """Lets batches go that were posted longer ago."""


class Leases(Protocol):
    """What one server at a time may do: by the store's clock, so that a server that is gone, or was
    paused, holds nothing for ever."""

    async def take(self, scope: Scope, kind: str, owner: str, lease_ms: int) -> bool:
        """True where `owner` holds it from now on for so long: nobody did, his time was over, or it
        was this owner already. What concerns no session is named by empty names."""

    async def give_back(self, scope: Scope, kind: str, owner: str) -> None:
        """It is free. Does nothing where another holds it."""

    async def owners(self, kind: str) -> Sequence[str]:
        """Who holds leases of a kind now, each named once, in an order that is the same for all who
        ask."""
