"""The directory of plugins: who is there, who may run, and what is refused, without running any of
their code."""

from __future__ import annotations

from pathlib import Path

import pytest

from contextengine_server.plugins.folder.directory import (
    ENABLED,
    PluginDirectory,
    PluginUnusable,
)
from tests.unit.plugins.folder.made import plugin

TRAP = "raise SystemExit('code of a plugin ran')"


@pytest.fixture
def directory(tmp_path: Path) -> PluginDirectory:
    return PluginDirectory(tmp_path / "plugins")


def test_without_a_directory_there_is_nobody(directory: PluginDirectory) -> None:
    assert (directory.plugins(), directory.missing()) == ([], [])


def test_who_is_there_is_found_by_its_description(directory: PluginDirectory) -> None:
    yaml = "name: b\nversion: 1.0\ndescription: Second.\nhooks: [other hosts' affair]\n"
    plugin(directory.path, "b", TRAP, yaml, folder="one")
    plugin(directory.path, "a", TRAP, folder="two")
    plugin(directory.path, "hidden", TRAP, folder=".hidden")
    plugin(directory.path, "private", TRAP, folder="_private")
    (directory.path / "no-plugin").mkdir()
    b, a = directory.plugins()
    assert (a.name, a.owner, a.enabled, a.why) == ("a", "plugin:a", False, "")
    assert b.manifest is not None
    assert (b.name, b.manifest.version, b.manifest.description) == ("b", "1.0", "Second.")


@pytest.mark.parametrize(
    ("yaml", "why"),
    [
        ("name: [", "cannot be read: ParserError"),
        ("- a\n", "must be a mapping with at least a `name`"),
        ("version: 1\n", "missing required field `name`"),
        ("name: ../up\n", "has the name '../up': letters, digits and . _ - only"),
        ("name: a\nconfig: []\n", "Expected `object`, got `array` - at `$.config`"),
        ("name: a\npackage: ../out\n", "its package '../out' leads outside its folder"),
        ("name: a\npackage: /\n", "its package '/' leads outside its folder"),
        ("name: a\npackage: src\n", "its package 'src' has no __init__.py"),
        ("name: a\ndescription: " + "x" * 70_000, "is larger than 65536 bytes"),
    ],
)
def test_one_that_cannot_be_used_is_named_with_why(
    directory: PluginDirectory, yaml: str, why: str
) -> None:
    plugin(directory.path, "a", TRAP, yaml)
    outside = directory.path / "out"
    outside.mkdir()
    (outside / "__init__.py").write_text(TRAP)
    [found] = directory.plugins()
    assert found.name == "a"
    assert why in found.why
    with pytest.raises(PluginUnusable, match="plugin 'a' cannot be used: "):
        directory.enable("a")


def test_a_package_does_not_leave_its_folder_by_a_link(
    directory: PluginDirectory, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "__init__.py").write_text(TRAP)
    folder = plugin(directory.path, "a", TRAP, "name: a\npackage: inner\n")
    (folder / "inner").symlink_to(outside, target_is_directory=True)
    [found] = directory.plugins()
    assert found.why == "its package 'inner' leads outside its folder"


def test_of_two_with_one_name_the_first_stays(directory: PluginDirectory) -> None:
    plugin(directory.path, "a", folder="one")
    plugin(directory.path, "a", folder="two")
    first, second = directory.plugins()
    assert (first.why, second.why) == ("", "the plugin in one has the same name")


def test_whose_code_may_run_is_an_operators_word(directory: PluginDirectory) -> None:
    plugin(directory.path, "a", TRAP)
    plugin(directory.path, "b", TRAP)
    directory.enable("b")
    directory.enable("b")
    assert {one.name: one.enabled for one in directory.plugins()} == {"a": False, "b": True}
    assert (directory.path / ENABLED).read_text() == "b\n"
    directory.disable("b")
    directory.disable("a")
    assert not any(one.enabled for one in directory.plugins())
    for action in (directory.enable, directory.disable):
        with pytest.raises(PluginUnusable, match=r"there is no plugin 'c' in .*: a, b"):
            action("c")


def test_one_that_was_removed_is_missed_until_it_is_disabled(directory: PluginDirectory) -> None:
    (plugin(directory.path, "a") / "__init__.py").unlink()
    folder = plugin(directory.path, "b")
    directory.enable("b")
    for file in folder.iterdir():
        file.unlink()
    assert directory.missing() == ["b"]
    directory.disable("b")
    assert directory.missing() == []


def test_a_folder_elsewhere_is_linked_and_not_enabled(
    directory: PluginDirectory, tmp_path: Path
) -> None:
    source = plugin(tmp_path / "work", "mine", TRAP, folder="checkout")
    linked = directory.link(source)
    assert (linked.folder, linked.enabled) == (directory.path / "mine", False)
    assert linked.folder.resolve() == source
    assert directory.link(source).folder == linked.folder, "again changes nothing"
    assert [one.why for one in directory.plugins()] == [""]
    other = plugin(tmp_path / "work", "mine", TRAP, folder="other")
    with pytest.raises(PluginUnusable, match=r"'mine' is there already: remove .*mine first"):
        directory.link(other)
    (tmp_path / "empty").mkdir()
    with pytest.raises(PluginUnusable, match=r"empty/plugin.yaml cannot be read"):
        directory.link(tmp_path / "empty")
