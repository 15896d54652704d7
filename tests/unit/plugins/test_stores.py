"""Stores by the schemes of their URLs: our own, and those of installed packages, which are loaded
when they are named and no sooner."""

from __future__ import annotations

from pathlib import Path

import pytest

from contextengine_server.config.loading import SettingsError, load_settings
from contextengine_server.plugins.entry_points import PluginBroken
from contextengine_server.plugins.stores import GROUP, UnknownStore, kind_of, own_kinds, schemes
from contextengine_server.store.cached import CachedHeads
from contextengine_server.store.kinds import store_of
from contextengine_server.store.memory import MemoryStore
from contextengine_server.store.memory.kind import MemoryKind
from contextengine_server.store.sqlite.kind import SqliteKind
from tests.unit.plugins.packages import install

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
    assert schemes() == ["memory", "sqlite"]
    assert {scheme: type(kind) for scheme, kind in own_kinds().items()} == {
        "memory": MemoryKind,
        "sqlite": SqliteKind,
    }
    for url in ("a.db", "/var/a.db", "./memory:.db", "sqlite:///a.db", "Memory.db", "C:a"):
        assert isinstance(kind_of(url), SqliteKind), url
    assert isinstance(kind_of("memory:"), MemoryKind)


def test_an_unknown_scheme_is_told_with_the_known_ones() -> None:
    with pytest.raises(UnknownStore, match="there is none for postgresql:, but for memory:, sqlit"):
        kind_of("postgresql://user:secret@host/db")
    said = refused("postgresql://user:secret@host/db")
    assert said.startswith("store.url: must name a store that is installed")
    assert "secret" not in said


def test_a_store_of_an_installed_package_is_chosen_by_its_scheme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path, SOURCE, f"[{GROUP}]\nshelf = {{}}:KIND\n")
    assert schemes() == ["memory", "shelf", "sqlite"]
    settings = load_settings(None, {"store.url": "shelf://top"}, {})
    kind = kind_of(settings.store.url)
    assert (kind.place("shelf://top"), kind.shared, kind.durable) == ("the shelf", True, True)
    assert isinstance(store_of(kind, "shelf://top"), MemoryStore)
    assert refused("shelf://").startswith("store.url: must name a shelf")


def test_what_is_not_named_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, tmp_path, "raise RuntimeError", f"[{GROUP}]\nshelf = {{}}:KIND\n")
    assert schemes() == ["memory", "shelf", "sqlite"]
    assert kind_of("memory:")
    assert "for memory:, shelf:, sqlite:;" in refused("other://")


def test_our_own_come_before_others_of_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path, SOURCE, f"[{GROUP}]\nsqlite = {{}}:KIND\n")
    assert schemes() == ["memory", "sqlite"]
    assert isinstance(kind_of("sqlite:///a.db"), SqliteKind)


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("raise RuntimeError('no driver')", "cannot be imported: RuntimeError: no driver"),
        ("KIND = 7", "is no kind of store but of type int"),
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


def test_heads_of_what_nobody_else_opens_are_kept_in_memory(tmp_path: Path) -> None:
    for url in (str(tmp_path / "new" / "a.db"), "memory:"):
        assert isinstance(store_of(kind_of(url), url), CachedHeads)
    assert (tmp_path / "new").is_dir()
