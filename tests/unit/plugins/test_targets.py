"""Targets of installed packages: they are found by their entry points, and what cannot be used is
named with the package that brought it along."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from contextengine_server.cli.output import CommandFailed
from contextengine_server.cli.project import list_targets, target_named
from contextengine_server.plugins.entry_points import Plugin
from contextengine_server.plugins.targets import GROUP, installed_targets, with_plugins
from contextengine_server.projection import codex, openai_chat
from contextengine_server.projection.targets import OWN
from tests.unit.plugins.packages import install

OURS = [target.name for target in OWN]
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
    assert installed_targets().targets.names == OURS
    install(monkeypatch, tmp_path, SOURCE, ENTRIES)
    found = installed_targets()
    assert found.targets.names == [*OURS, "cohere", "mistral"]
    assert found.packages == {"cohere": "third-party 1.2", "mistral": "third-party 1.2"}
    assert not found.broken
    mistral = found.targets.named("mistral")
    assert mistral is not None
    assert mistral.title == "Mistral"


@pytest.mark.parametrize(
    ("source", "entry", "wrong"),
    [
        ("import nothing_of_that_name", "mistral = {}:MISTRAL", "ModuleNotFoundError"),
        ("raise RuntimeError('no key')", "mistral = {}:MISTRAL", "RuntimeError: no key"),
        (SOURCE, "mistral = {}:NONE", "AttributeError"),
        ("MISTRAL = 7", "mistral = {}:MISTRAL", "not a record of a target but of type int"),
        (SOURCE, "claude = {}:MISTRAL", "calls itself 'mistral'"),
        (SOURCE.replace('"mistral"', '"codex"'), "codex = {}:MISTRAL", "another target has"),
        (SOURCE.replace("number=0", "number=9"), "mistral = {}:MISTRAL", "has a number"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_package_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, entry: str, wrong: str
) -> None:
    install(monkeypatch, tmp_path, source, f"[{GROUP}]\n{entry}\n")
    other = tmp_path / "other"
    other.mkdir()
    install(monkeypatch, other, SOURCE, f"[{GROUP}]\ncohere = {{}}:COHERE\n", "another")
    found = installed_targets()
    assert found.targets.names == [*OURS, "cohere"]
    assert found.targets.named("codex") is codex.TARGET
    assert [(why.name, why.package) for why in found.broken] == [
        (entry.partition(" ")[0], "third-party 1.2")
    ]
    text = str(found.broken[0])
    assert text.startswith(f"third-party 1.2 brings along '{entry.partition(' ')[0]}' in the group")
    assert text.endswith("Mend or uninstall third-party")
    assert wrong in text


def test_of_two_packages_with_one_name_the_first_is_used() -> None:
    first = replace(openai_chat.TARGET, name="mistral", number=0)
    second = replace(openai_chat.TARGET, name="mistral", title="Another", number=0)
    found = with_plugins([Plugin("mistral", "a 1", first), Plugin("mistral", "b 1", second)])
    assert found.targets.named("mistral") is first
    assert [why.package for why in found.broken] == ["b 1"]


def test_the_command_line_says_why_a_target_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, tmp_path, "MISTRAL = 7", f"[{GROUP}]\nmistral = {{}}:MISTRAL\n")
    with pytest.raises(CommandFailed) as caught:
        target_named("mistral")
    assert "of type int" in caught.value.text
    assert caught.value.status == 2
    list_targets(json_wanted=True)
    said = capsys.readouterr()
    assert [row["name"] for row in json.loads(said.out)] == OURS
    assert "third-party 1.2 brings along 'mistral'" in said.err
