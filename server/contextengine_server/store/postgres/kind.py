"""The store in a PostgreSQL database, as settings name it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

from contextengine_server.store import schemas
from contextengine_server.store.errors import StoreRefused
from contextengine_server.store.kinds import Outlook, Readiness, StoreKind
from contextengine_server.store.protocols import Store
from contextengine_server.store.schemas import SchemaPlan

from . import migrations, options
from .migrations import HEAD

if TYPE_CHECKING:
    from asyncpg import Connection

    from contextengine_server.store.transfer.side import CopySource, CopyTarget

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

        place = options.place(url)
        try:
            async with _connected(url) as raw:
                found = await database.revision(raw, place)
        except StoreRefused:
            return Outlook(Readiness.READY)  # opening it says what is wrong
        if found is None:
            return Outlook(
                Readiness.ABSENT, f"no tables in {place} yet: the first start makes them"
            )
        if not database.done(found):
            said = f"{place} has schema {found}: the next start upgrades it to {HEAD}"
            return Outlook(Readiness.OLDER, said, "Make a backup of the database first.")
        return Outlook(Readiness.READY)

    async def plan(self, url: str) -> SchemaPlan:
        """See StoreKind."""
        from contextengine_server.store.sql.migrations import steps

        from . import database

        async with _connected(url) as raw:
            found = await database.revision(raw, options.place(url))
        if database.done(found):
            return SchemaPlan(found or "", HEAD)
        script = migrations.script(found)
        return SchemaPlan(found or "", HEAD, steps(migrations.config(), found), script)

    async def migrate(self, url: str) -> None:
        """See StoreKind. The others wait for whoever does it."""
        from . import database
        from .connections import Connections

        await database.prepare(Connections(options.parse(url)), options.place(url))

    async def faults(self, url: str) -> list[str]:
        """See StoreKind. Needs the right to make a schema, in a transaction that is rolled back."""
        import asyncpg

        from . import database
        from .migrations import catalogue

        place = options.place(url)
        async with _connected(url) as raw:
            found = await database.revision(raw, place)
            if found is None:
                raise StoreRefused(f"no tables in {place}")
            try:
                return schemas.faults(await catalogue.wanted(raw), await catalogue.found(raw))
            except asyncpg.InsufficientPrivilegeError as error:
                raise StoreRefused(
                    f"{place} cannot be verified ({error}): what it should be is made beside it,"
                    " and rolled back. GRANT CREATE ON DATABASE to this user, or verify as its"
                    " owner"
                ) from None

    def copied_from(self, url: str) -> AbstractAsyncContextManager[CopySource]:
        """See StoreKind."""
        from .copies import side

        return side.source(url)

    def copied_into(self, url: str) -> AbstractAsyncContextManager[CopyTarget]:
        """See StoreKind."""
        from .copies import side

        return side.target(url)

    def store(self, url: str) -> Store:
        """The store, not yet open."""
        from .store import PostgresStore

        return PostgresStore(url)


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[Connection]:
    """A connection of its own. Raises StoreRefused."""
    from . import database
    from .connections import FAILURES, Connections

    connections = Connections(options.parse(url))
    raw = await database.reached(connections, options.place(url))
    try:
        yield raw
    finally:
        with suppress(*FAILURES):
            await raw.close(timeout=connections.options.wait_s)


KIND = PostgresKind()
