"""Our stores pass the suite that every store passes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from contextengine_server.store.cached_heads import CachedHeads
from contextengine_server.store.memory import MemoryStore, Tables
from contextengine_server.store.postgres.store import PostgresStore
from contextengine_server.store.protocols import Store
from contextengine_server.store.sqlite import SqliteStore
from contextengine_server.testing.store import StoreSuite
from tests import databases, postgres


@contextmanager
def nearly_full(store: SqliteStore) -> Iterator[None]:
    """The file may grow by 100 pages of 4 KB, and SQLite itself refuses more."""
    assert store._open is not None
    writer = store._open.writer

    def limit(pages: int) -> None:
        writer.submit(
            lambda db: db.execute(f"PRAGMA max_page_count = {pages}").fetchone(), lambda _: None
        )

    limit(store._path.with_name(store._path.name + "-wal").stat().st_size // 4096 + 100)
    try:
        yield
    finally:
        limit(2**31 - 1)


class TestSqlite(StoreSuite):
    def factory(self, place: Path) -> Store:
        return SqliteStore(databases.place(place / "store.db"))

    def crowded(self, store: Store, place: Path) -> AbstractContextManager[None]:
        assert isinstance(store, SqliteStore)
        return nearly_full(store)


class TestCachedSqlite(StoreSuite):
    def factory(self, place: Path) -> Store:
        return CachedHeads(SqliteStore(databases.place(place / "store.db")))

    def crowded(self, store: Store, place: Path) -> AbstractContextManager[None]:
        assert isinstance(store, CachedHeads)
        assert isinstance(store._store, SqliteStore)
        return nearly_full(store._store)


class TestMemory(StoreSuite):
    shared = True
    databases: ClassVar[defaultdict[Path, Tables]] = defaultdict(Tables)

    def factory(self, place: Path) -> Store:
        return MemoryStore(self.databases[place])


class TestPostgres(StoreSuite):
    shared = True

    @pytest.fixture(autouse=True)
    def database(self) -> None:
        postgres.require()

    def factory(self, place: Path) -> Store:
        return PostgresStore(postgres.place(place))


def test_no_part_of_the_suite_hides_another() -> None:
    names = [name for part in StoreSuite.__mro__ for name in vars(part) if name.startswith("test_")]
    assert len(names) == len(set(names)) > 100
