"""Targets of installed packages: they are found by their entry points, and what cannot be used is
named with the package that brought it along."""

from __future__ import annotations

from pathlib import Path

import pytest

from contextengine_server.cli.starting import refusal
from contextengine_server.plugins.entry_points import Plugin, PluginBroken, installed
from contextengine_server.plugins.targets import GROUP, installed_targets, with_plugins
from contextengine_server.projection import anthropic
from contextengine_server.projection.targets import OWN
from tests.unit.plugins.packages import install

SOURCE = """
from msgspec.structs import replace
from contextengine_server.projection.openai_chat import TARGET as CHAT
MISTRAL = replace(CHAT, name="mistral", title="Mistral", number=0)
COHERE = replace(CHAT, name="cohere", title="Cohere", number=0)
"""
ENTRIES = f"[{GROUP}]\nmistral = {{}}:MISTRAL\ncohere = {{}}:COHERE\n[another.group]\nx = {{}}:NO\n"


def test_targets_of_installed_packages_stand_behind_our_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert installed_targets().names == [target.name for target in OWN]
    install(monkeypatch, tmp_path, SOURCE, ENTRIES)
    targets = installed_targets()
    assert targets.names == [*[target.name for target in OWN], "cohere", "mistral"]
    found = targets.named("mistral")
    assert found is not None
    assert found.title == "Mistral"
    assert {plugin.package for plugin in installed(GROUP)} == {"third-party 1.2"}


@pytest.mark.parametrize(
    ("source", "entry", "wrong"),
    [
        ("import nothing_of_that_name", "mistral = {}:MISTRAL", "ModuleNotFoundError"),
        ("raise RuntimeError('no key')", "mistral = {}:MISTRAL", "RuntimeError: no key"),
        (SOURCE, "mistral = {}:NONE", "AttributeError"),
        ("MISTRAL = 7", "mistral = {}:MISTRAL", "no record of a target but of type int"),
        (SOURCE, "claude = {}:MISTRAL", "calls itself 'mistral'"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, entry: str, wrong: str
) -> None:
    install(monkeypatch, tmp_path, source, f"[{GROUP}]\n{entry}\n")
    with pytest.raises(PluginBroken) as caught:
        installed_targets()
    text = str(caught.value)
    assert text.startswith(f"third-party 1.2 brings along '{entry.partition(' ')[0]}' in the group")
    assert text.endswith("Mend or uninstall third-party")
    assert wrong in text
    assert refusal(caught.value) == text


def test_our_own_names_and_numbers_are_not_taken() -> None:
    with pytest.raises(PluginBroken, match="has a number"):
        with_plugins([Plugin("anthropic", "p 1", anthropic.TARGET)])


def test_a_name_is_given_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other"
    other.mkdir()
    install(monkeypatch, tmp_path, SOURCE, f"[{GROUP}]\nmistral = {{}}:MISTRAL\n")
    install(monkeypatch, other, SOURCE, f"[{GROUP}]\nmistral = {{}}:MISTRAL\n", "another")
    with pytest.raises(PluginBroken, match="is a name that another target has"):
        installed_targets()


def test_a_target_of_another_package_cannot_be_one_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = SOURCE.replace('name="mistral"', 'name="anthropic"')
    install(monkeypatch, tmp_path, source, f"[{GROUP}]\nanthropic = {{}}:MISTRAL\n")
    with pytest.raises(PluginBroken, match="is a name that another target has"):
        installed_targets()
