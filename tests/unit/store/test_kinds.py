"""What opening a database would do is told without opening it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("url", "wrong"),
    [
        ("sqlite:store.db", "must be a path or sqlite:///path"),
        ("sqlite:///", "must name a file; memory: is a store that keeps nothing"),
        ("", "must name a file"),
        (":memory:", "must name a file"),
        ("sqlite:///:memory:", "must name a file"),
    ],
)
def test_what_names_no_file_is_refused(url: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        SQLITE.check(url)


def test_what_names_a_store_is_let_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("var/store.db", "sqlite:///var/store.db"):
        SQLITE.check(url)
        assert SQLITE.place(url) == str(tmp_path / "var/store.db")
    assert SQLITE.place(f"sqlite:///{tmp_path}/store.db") == str(tmp_path / "store.db")
    assert not SQLITE.shared


async def test_a_store_in_memory_has_no_name() -> None:
    MEMORY.check("memory:")
    with pytest.raises(ValueError, match="must be memory: alone: such a store has no name"):
        MEMORY.check("memory:mine")
    assert MEMORY.place("memory:") == "in memory"
    assert (await MEMORY.outlook("memory:")).found == "in memory: empty at each start"
    store = MEMORY.store("memory:")
    await store.open()
    assert set((await store.counts()).values()) == {0}
    await store.close()
    assert not MEMORY.shared
