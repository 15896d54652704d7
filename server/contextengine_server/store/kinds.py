"""What a kind of store says of itself, so that nobody else needs to know it by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from contextengine_server.store.cached_heads import LEAST_HEADS, CachedHeads
from contextengine_server.store.errors import StoreRefused
from contextengine_server.store.protocols import Store
from contextengine_server.store.schemas import SchemaPlan

if TYPE_CHECKING:
    from contextengine_server.store.transfer.side import CopySource, CopyTarget


class Readiness(Enum):
    """How a database is before it is opened."""

    ABSENT = "absent"
    """There is none: opening makes it."""
    OLDER = "older"
    """An earlier version wrote it: opening upgrades it."""
    READY = "ready"
    """Opening it changes nothing, or says what is wrong."""


class Outlook(msgspec.Struct, frozen=True):
    """What opening a database would do, found out without opening it."""

    readiness: Readiness
    found: str = ""
    """The same in words."""
    advice: str = ""
    """What to do before it is opened; empty: nothing."""


class StoreKind(ABC):
    """A kind of store, chosen by the scheme of `store.url`.

    Of an installed package: an instance under the entry-point group `contextengine.stores`, named
    like the scheme.
    """

    urls: str
    """How its URLs look, in a few words: `postgresql://host/database`."""

    durable: bool = True
    """Whether what was acknowledged survives a restart."""

    eases: bool = False
    """Whether it has a way not to wait for the disk at each commit (`eased`)."""

    shared: bool = True
    """Whether several servers may have one database open at once. Where not, what a session's head
    is gets answered from memory."""

    schema: str = ""
    """The newest schema that it knows; empty: it has none."""

    @abstractmethod
    def check(self, url: str) -> None:
        """Raises ValueError where the URL names no store, as a sentence without its subject:
        `must name a file`. The text holds no password."""

    @abstractmethod
    def place(self, url: str) -> str:
        """What people call the database; without a password."""

    @abstractmethod
    async def outlook(self, url: str) -> Outlook:
        """What opening the database would do. Makes and changes nothing."""

    async def plan(self, url: str) -> SchemaPlan:
        """What bringing the database to the present schema would do. Makes and changes nothing.
        Raises StoreRefused, also for a kind without a schema."""
        raise StoreRefused(f"{self.urls}: such a store has no schema")

    async def migrate(self, url: str) -> None:
        """Brings the database to the present schema, whole or not at all: what opening it does
        first. Of several at once one does it. Raises StoreRefused."""
        raise StoreRefused(f"{self.urls}: such a store has no schema")

    async def faults(self, url: str) -> list[str]:
        """What in the database is not as this program needs it: tables, columns and indexes, each
        fault in words. Changes nothing. Raises StoreRefused, also where there is no database."""
        raise StoreRefused(f"{self.urls}: such a store has no schema")

    def copied_from(self, url: str) -> AbstractAsyncContextManager[CopySource]:
        """The database as it is at one moment, while servers write to it, for a copy into a store
        of any kind. It must have the present schema. Raises StoreRefused."""
        raise StoreRefused(f"{self.urls}: such a store cannot be copied")

    def copied_into(self, url: str) -> AbstractAsyncContextManager[CopyTarget]:
        """The database, which no server has open, for a copy of a store of any kind. It must have
        the present schema. Raises StoreRefused."""
        raise StoreRefused(f"{self.urls}: nothing can be copied into such a store")

    async def back_up(self, url: str, target: Path) -> dict[str, int]:
        """Copies the database into a file, as it is at one moment, while servers write to it; what
        the copy holds, by name. Raises StoreRefused, also for a kind that has means of its own."""
        raise StoreRefused(f"{self.urls}: such a store has its own means of backup")

    async def restore(self, url: str, backup: Path, *, replace: bool) -> dict[str, int]:
        """Puts a copy of such a file in the database's place; what it holds, by name. `replace`:
        also where there is one, which is moved aside. Raises StoreRefused."""
        raise StoreRefused(f"{self.urls}: such a store has its own means of restoring")

    @abstractmethod
    def store(self, url: str) -> Store:
        """The store, not yet open. What must be there before it is opened, such as a directory, is
        made."""

    def eased(self, url: str) -> Store:
        """The same where a commit does not wait until the disk has it: what was acknowledged
        survives the end of the server, however it comes, and the last of it may not survive that of
        the machine. What is there is whole in any case. Raises StoreRefused for a kind without such
        a way."""
        raise StoreRefused(f"{self.urls}: such a store has one way to commit")


def store_of(kind: StoreKind, url: str, *, eased: bool = False, warm: int = 0) -> Store:
    """The store of a URL, not yet open. One that nobody else opens answers heads from memory: those
    of as many sessions as may be `warm`, at least."""
    store = kind.eased(url) if eased else kind.store(url)
    return store if kind.shared else CachedHeads(store, max(warm, LEAST_HEADS))
