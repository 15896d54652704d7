"""Stores by the schemes of their URLs: our own, and those of installed packages, which are loaded
when they are named and no sooner."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from contextengine_server.config.load import SettingsError, load_settings
from contextengine_server.plugins.entry_points import PluginBroken
from contextengine_server.plugins.stores import GROUP, UnknownStore, kind_of, own_kinds, schemes
from contextengine_server.store.cached_heads import CachedHeads
from contextengine_server.store.kinds import store_of
from contextengine_server.store.memory import MemoryStore
from contextengine_server.store.memory.kind import MemoryKind
from contextengine_server.store.postgres.kind import PostgresKind
from contextengine_server.store.sqlite.kind import SqliteKind
from tests.unit.plugins.packages import install

ROOT = Path(__file__).parents[3]
SOURCE = """
from contextengine_server.store.kinds import Outlook, Readiness, StoreKind
from contextengine_server.store.memory import MemoryStore

class Shelf(StoreKind):
    urls = "shelf://name"

    def check(self, url):
        if url == "shelf://":
            raise ValueError("must name a shelf")

    def place(self, url):
        return "the shelf"

    async def outlook(self, url):
        return Outlook(Readiness.READY)

    def store(self, url):
        return MemoryStore()

KIND = Shelf()
"""


def refused(url: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(None, {"store.url": url}, {})
    (problem,) = caught.value.problems
    return str(problem)


def test_our_own_are_there() -> None:
    assert schemes() == ["memory", "postgres", "postgresql", "sqlite"]
    assert {scheme: type(kind) for scheme, kind in own_kinds().items()} == {
        "memory": MemoryKind,
        "postgres": PostgresKind,
        "postgresql": PostgresKind,
        "sqlite": SqliteKind,
    }
    for url in ("a.db", "/var/a.db", "./memory:.db", "sqlite:///a.db", "Memory.db", "C:a"):
        assert isinstance(kind_of(url), SqliteKind), url
    assert isinstance(kind_of("memory:"), MemoryKind)


def test_an_unknown_scheme_is_told_with_the_known_ones() -> None:
    with pytest.raises(UnknownStore, match="there is none for mysql:, but for memory:, postgres"):
        kind_of("mysql://user:secret@host/db")
    said = refused("mysql://user:secret@host/db")
    assert said.startswith("store.url: must name a store that is installed")
    assert "secret" not in said


def test_a_store_of_an_installed_package_is_chosen_by_its_scheme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path, SOURCE, f"[{GROUP}]\nshelf = {{}}:KIND\n")
    assert schemes() == ["memory", "postgres", "postgresql", "shelf", "sqlite"]
    settings = load_settings(None, {"store.url": "shelf://top"}, {})
    kind = kind_of(settings.store.url)
    assert (kind.place("shelf://top"), kind.shared, kind.durable) == ("the shelf", True, True)
    assert isinstance(store_of(kind, "shelf://top"), MemoryStore)
    assert refused("shelf://").startswith("store.url: must name a shelf")


def test_what_is_not_named_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, tmp_path, "raise RuntimeError", f"[{GROUP}]\nshelf = {{}}:KIND\n")
    assert schemes() == ["memory", "postgres", "postgresql", "shelf", "sqlite"]
    assert kind_of("memory:")
    assert "for memory:, postgres:, postgresql:, shelf:, sqlite:;" in refused("other://")


def test_our_own_come_before_others_of_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path, SOURCE, f"[{GROUP}]\nsqlite = {{}}:KIND\n")
    assert schemes() == ["memory", "postgres", "postgresql", "sqlite"]
    assert isinstance(kind_of("sqlite:///a.db"), SqliteKind)


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("raise RuntimeError('no driver')", "cannot be imported: RuntimeError: no driver"),
        ("KIND = 7", "is not a kind of store but of type int"),
        (SOURCE.replace("KIND = Shelf()", "KIND = Shelf"), "but of type ABCMeta"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, wrong: str
) -> None:
    install(monkeypatch, tmp_path, source, f"[{GROUP}]\nshelf = {{}}:KIND\n")
    with pytest.raises(PluginBroken, match=wrong):
        kind_of("shelf://top")
    said = refused("shelf://top")
    assert said.startswith("store.url: names a store that cannot be used: third-party 1.2 brings")
    assert wrong in said


def test_two_packages_cannot_both_have_a_scheme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    install(monkeypatch, tmp_path, SOURCE, f"[{GROUP}]\nshelf = {{}}:KIND\n")
    install(monkeypatch, other, SOURCE, f"[{GROUP}]\nshelf = {{}}:KIND\n", "another")
    with pytest.raises(PluginBroken, match=r"another 1.2|third-party 1.2"):
        kind_of("shelf://top")


def test_the_store_of_the_documentation_is_found_and_passes_the_suite(tmp_path: Path) -> None:
    """As a package of its own, with pytest's own settings, in a process of its own."""
    page = (ROOT / "docs" / "stores.md").read_text(encoding="utf-8")
    files = dict(re.findall(r"`(\w+\.py)`:\n\n```python\n(.*?)```", page, re.DOTALL))
    assert set(files) == {"shelf.py", "test_shelf.py"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (entry,) = re.findall(r'entry-points."(.+)"\]\n(\w+) = "(.+)"', page)
    metadata = tmp_path / "shelf-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{entry[0]}]\n{entry[1]} = {entry[2]}\n")

    def done(*words: str) -> str:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
            "CONTEXTENGINE_SERVER__ADDRESS": "127.0.0.1:0",
        }
        run = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    command = "from contextengine_server.cli import main; main()"
    told = done("-c", command, "doctor", "--json", "--store", "shelf:top")
    assert "open, in memory" in told
    tested = done("-m", "pytest", "-q", "-p", "no:cacheprovider", ".")
    assert re.search(r"\b[1-9]\d\d passed", tested)


def test_heads_of_what_nobody_else_opens_are_kept_in_memory(tmp_path: Path) -> None:
    for url in (str(tmp_path / "new" / "a.db"), "memory:"):
        assert isinstance(store_of(kind_of(url), url), CachedHeads)
    assert (tmp_path / "new").is_dir()
