"""What every part of the suite stands on: the store under test, a second one, and one opened
again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import pytest_asyncio

from contextengine_server.store.protocols import Store

Reopen = Callable[[], Awaitable[Store]]
"""Closes the store of the test and opens another over the same database, as a restart does."""


class StoreCase:
    """A test class over one kind of store. Every test has a database of its own."""

    pytestmark = pytest.mark.asyncio(loop_scope="function")

    shared = False
    """Whether two stores may have one database open at once."""

    searchable = True
    """Whether it has a search index."""

    def factory(self, place: Path) -> Store:
        """A store that is not open yet. `place` is a directory, empty at first, that stands for one
        database: what is made for the same place has the same rows."""
        raise NotImplementedError

    def crowded(self, store: Store, place: Path) -> AbstractContextManager[None] | None:
        """While it lasts, the database has room for small messages and none for one of 2 MB, as on
        a disk that is nearly full. None: the store cannot be brought there."""
        return None

    @pytest_asyncio.fixture(loop_scope="function")
    async def store(self, tmp_path: Path) -> AsyncIterator[Store]:
        """The store under test, open."""
        made = self.factory(tmp_path)
        await made.open()
        yield made
        await made.close()

    @pytest_asyncio.fixture(loop_scope="function")
    async def other(self, store: Store, tmp_path: Path) -> AsyncIterator[Store]:
        """What a second server would have open: another store over the same database, or the same
        one where it is not shared."""
        if not self.shared:
            yield store
            return
        made = self.factory(tmp_path)
        await made.open()
        yield made
        await made.close()

    @pytest_asyncio.fixture(loop_scope="function")
    async def reopen(self, store: Store, tmp_path: Path) -> AsyncIterator[Reopen]:
        """A restart."""
        opened: list[Store] = []

        async def restart() -> Store:
            for before in (store, *opened):
                await before.close()
            opened.append(self.factory(tmp_path))
            await opened[-1].open()
            return opened[-1]

        yield restart
        for made in opened:
            await made.close()


class IndexCase(StoreCase):
    """Tests that are left out where a store has no search index."""

    @pytest.fixture(autouse=True)
    def with_an_index(self) -> None:
        """Skips what searches."""
        if not self.searchable:
            pytest.skip("this store has no search index")
