"""The store in memory, as settings name it."""

from __future__ import annotations

from contextengine_server.store.kinds import Outlook, Readiness, StoreKind
from contextengine_server.store.protocols import Store

from .store import MemoryStore

URL = "memory:"


class MemoryKind(StoreKind):
    """`memory:`, new and empty each time."""

    urls = URL
    durable = False
    shared = False

    def check(self, url: str) -> None:
        """Refuses whatever stands behind the scheme."""
        if url != URL:
            raise ValueError(f"must be {URL} alone: such a store has no name")

    def place(self, url: str) -> str:
        """The store has no place of its own."""
        return "in memory"

    async def outlook(self, url: str) -> Outlook:
        """It is made when it is opened."""
        return Outlook(Readiness.ABSENT, "in memory: empty at each start")

    def store(self, url: str) -> Store:
        """An empty store."""
        return MemoryStore()


KIND = MemoryKind()
