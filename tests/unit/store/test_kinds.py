"""What opening a database would do is told without opening it."""

from __future__ import annotations

import shutil
from pathlib import Path

from contextengine_server.store.kinds import Readiness
from contextengine_server.store.memory.kind import KIND as MEMORY
from contextengine_server.store.sql.migrations import HEAD
from contextengine_server.store.sqlite.kind import KIND as SQLITE

V1 = Path(__file__).parents[2] / "data" / "store_v1.db"


async def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "new" / "store.db"
    outlook = await SQLITE.outlook(f"sqlite:///{path}")
    assert outlook.readiness is Readiness.ABSENT
    assert outlook.found == f"no database at {path} yet: the first start makes it"
    assert not path.parent.exists()


async def test_a_file_of_an_earlier_version(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    shutil.copy(V1, path)
    outlook = await SQLITE.outlook(str(path))
    assert outlook.readiness is Readiness.OLDER
    assert outlook.found == f"{path} has schema 0001: the next start upgrades it to {HEAD}"
    assert "backup" in outlook.advice
    assert path.read_bytes() == V1.read_bytes()

    store = SQLITE.store(str(path))
    await store.open()
    await store.close()
    assert (await SQLITE.outlook(str(path))).readiness is Readiness.READY


async def test_a_file_that_is_no_database_is_left_to_the_store(tmp_path: Path) -> None:
    path = tmp_path / "text.db"
    path.write_text("no database " * 400)
    assert (await SQLITE.outlook(str(path))).readiness is Readiness.READY


async def test_a_store_in_memory_is_always_new() -> None:
    assert (await MEMORY.outlook("memory:")).readiness is Readiness.ABSENT
    assert not MEMORY.durable
