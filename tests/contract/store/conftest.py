"""The stores that the suite runs against. Another store joins by adding its backend to BACKENDS."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol

import pytest
import pytest_asyncio

from contextengine_server.store.cached import CachedHeads
from contextengine_server.store.protocols import Store
from contextengine_server.store.sqlite import SqliteStore


class Backend(Protocol):
    """Where one test's rows are."""

    def store(self) -> Store:
        """A store over these rows, not yet open."""


class SqliteBackend:
    def __init__(self, directory: Path) -> None:
        self._path = directory / "store.db"

    def store(self) -> Store:
        return SqliteStore(self._path)


class CachedBackend(SqliteBackend):
    def store(self) -> Store:
        return CachedHeads(super().store())


BACKENDS = {"sqlite": SqliteBackend, "sqlite, cached": CachedBackend}


@pytest.fixture(params=sorted(BACKENDS))
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    return BACKENDS[request.param](tmp_path)


@pytest_asyncio.fixture
async def store(backend: Backend) -> AsyncIterator[Store]:
    opened = backend.store()
    await opened.open()
    yield opened
    await opened.close()
