"""`contextengine plugins`: from a folder to an engine that can be chosen, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from contextengine_server.cli.application import app
from contextengine_server.cli.output import CommandFailed
from contextengine_server.plugins.engines import installed_engines
from tests.unit.plugins.folder.made import NATIVE, plugin


@pytest.fixture(autouse=True)
def in_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    installed_engines.cache_clear()


def typed(*words: str) -> Result:
    installed_engines.cache_clear()  # as a process of its own would
    return CliRunner().invoke(app, ["plugins", *words])


def listed(*words: str) -> dict[str, dict[str, str]]:
    found = typed("list", "--json", *words)
    assert found.exit_code == 0, found.output
    return {row["plugin"]: row for row in json.loads(found.stdout)["plugins"]}


def refused(*words: str) -> str:
    error = typed(*words).exception
    assert isinstance(error, CommandFailed)
    return error.text


def test_a_plugin_from_link_to_disable(tmp_path: Path) -> None:
    plugin(tmp_path / "work", "mine", folder="checkout")
    assert listed() == {}
    assert "does not run before" in typed("link", "work/checkout").output
    assert (listed()["mine"]["state"], listed()["mine"]["engine"]) == ("not enabled", "")
    assert typed("enable", "mine").exit_code == 0
    assert (listed()["mine"]["state"], listed()["mine"]["engine"]) == ("enabled", "plain")
    assert "checkout" in listed()["mine"]["folder"]
    assert typed("disable", "mine").exit_code == 0
    assert listed()["mine"]["state"] == "not enabled"


def test_the_directory_is_named_by_a_flag_or_by_the_settings(tmp_path: Path) -> None:
    plugin(tmp_path / "elsewhere", "mine")
    (tmp_path / "settings.yaml").write_text("plugins: {directory: elsewhere}\n")
    assert "mine" in listed("--directory", "elsewhere")
    assert "mine" in listed("--config", "settings.yaml")


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    directory = tmp_path / "var" / "plugins"
    plugin(directory, "broken", "raise RuntimeError")
    plugin(directory, "bad", NATIVE, "version: 1\n")
    gone = plugin(directory, "gone")
    for name in ("broken", "gone"):
        assert typed("enable", name).exit_code == 0
    for file in gone.iterdir():
        file.unlink()
    found = listed()
    assert found["broken"]["state"] == (
        "enabled, cannot be used: plugin:broken cannot be imported: RuntimeError"
    )
    assert "missing required field `name`" in found["bad"]["state"]
    assert found["gone"]["state"].startswith("enabled, and not there any more")
    assert "plugin 'bad' cannot be used" in refused("enable", "bad")
    assert "there is no plugin 'none'" in refused("enable", "none")
    (tmp_path / "empty").mkdir()
    assert "plugin.yaml cannot be read" in refused("link", "empty")
