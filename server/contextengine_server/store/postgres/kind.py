"""The store in a PostgreSQL database, as settings name it."""

from __future__ import annotations

from importlib.util import find_spec

from contextengine_server.store.errors import StoreRefused
from contextengine_server.store.kinds import Outlook, Readiness, StoreKind
from contextengine_server.store.protocols import Store

from . import options
from .migrations import HEAD

_EXTRA = "pip install 'contextengine-server[postgres]'"


class PostgresKind(StoreKind):
    """`postgresql://user:password@host:port/database`."""

    urls = options.URLS
    shared = True
    schema = HEAD

    def check(self, url: str) -> None:
        """Refuses what names no database, and what an option does not take."""
        options.parse(url)
        if find_spec("asyncpg") is None:
            raise ValueError(f"names a database whose driver is not installed: {_EXTRA}")

    def place(self, url: str) -> str:
        """The URL without its password and options."""
        return options.place(url)

    async def outlook(self, url: str) -> Outlook:
        """Whether the database has our tables, and what schema."""
        from . import database
        from .connections import Connections

        place, connections = options.place(url), Connections(options.parse(url))
        try:
            raw = await database.reached(connections, place)
            try:
                found = await database.revision(raw, place)
            finally:
                await raw.close(timeout=connections.options.wait_s)
        except StoreRefused:
            return Outlook(Readiness.READY)  # opening it says what is wrong
        if found is None:
            return Outlook(
                Readiness.ABSENT, f"no tables in {place} yet: the first start makes them"
            )
        if found != HEAD:
            said = f"{place} has schema {found}: the next start upgrades it to {HEAD}"
            return Outlook(Readiness.OLDER, said, "Make a backup of the database first.")
        return Outlook(Readiness.READY)

    def store(self, url: str) -> Store:
        """The store, not yet open."""
        from .store import PostgresStore

        return PostgresStore(url)


KIND = PostgresKind()
