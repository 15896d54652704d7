"""The engines of plugins: only code that an operator enabled runs, and what is broken is refused
with its owner and stops nothing."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from contextengine_server.config.load import SettingsError, load_settings
from contextengine_server.engines.catalogue import Catalogue
from contextengine_server.engines.registration import InvalidEngine
from contextengine_server.engines.registry import Registry
from contextengine_server.errors import UnknownEngine
from contextengine_server.plugins.engines import installed_engines
from contextengine_server.plugins.folder.directory import PluginDirectory
from contextengine_server.plugins.folder.engines import PluginEngine, engines_of
from tests.unit.plugins.folder.made import NATIVE, plugin


@pytest.fixture(autouse=True)
def looked_for_anew() -> Iterator[None]:
    installed_engines.cache_clear()
    yield
    installed_engines.cache_clear()


@pytest.fixture
def directory(tmp_path: Path) -> PluginDirectory:
    return PluginDirectory(tmp_path / "plugins")


def enabled(directory: PluginDirectory, name: str, source: str = NATIVE, yaml: str = "") -> None:
    plugin(directory.path, name, source, yaml)
    directory.enable(name)


def catalogue(directory: PluginDirectory) -> Catalogue:
    return installed_engines(directory.path)


def refusal(directory: PluginDirectory, owner: str) -> str:
    [refused] = [one for one in catalogue(directory).refused if one.owner == owner]
    return str(refused.why)


def test_an_enabled_plugin_stands_beside_ours_with_its_own_block(
    directory: PluginDirectory,
) -> None:
    enabled(directory, "plain-plugin")
    [found] = [one for one in catalogue(directory).registrations if one.id == "plain"]
    assert found.owner == "plugin:plain-plugin"
    where = {"plugins.directory": str(directory.path)}
    settings = load_settings(None, {**where, "engine.plain.keep": 9}, {})
    assert settings.engine.options("plain").keep == 9
    assert settings.engine.default == "dag", "being installed activates nothing"
    with pytest.raises(SettingsError, match=r"engine.plain.keep: must be at least 1, got 0"):
        load_settings(None, {**where, "engine.plain.keep": 0}, {})


@pytest.mark.parametrize("source", ["environment", "file"])
def test_the_directory_is_a_setting_like_any_other(
    directory: PluginDirectory, source: str, tmp_path: Path
) -> None:
    enabled(directory, "plain-plugin")
    file = tmp_path / "settings.yaml"
    file.write_text(f"plugins: {{directory: {directory.path}}}\n")
    environ = {"CONTEXTENGINE_PLUGINS__DIRECTORY": str(directory.path)}
    settings = (
        load_settings(None, {}, environ) if source == "environment" else load_settings(file, {}, {})
    )
    assert "plain" in settings.engine.catalogue().ids
    assert settings.plugins.directory == str(directory.path)


def test_code_that_nobody_enabled_does_not_run(directory: PluginDirectory) -> None:
    plugin(directory.path, "plain", "raise SystemExit('code of a plugin ran')")
    known = catalogue(directory)
    assert not [one for one in known.refused if one.owner == "plugin:plain"]
    with pytest.raises(
        UnknownEngine, match=r"'plain' is not registered: the plugin 'plain' is not enabled"
    ):
        Registry(known).configured("plain")


def test_modules_of_a_plugin_are_its_own(directory: PluginDirectory) -> None:
    """They are imported relatively, and stand in no other module's place."""
    for name in ("one", "two"):
        folder = plugin(directory.path, name, "from .inner import ENGINE")
        (folder / "inner.py").write_text(NATIVE.replace('"plain"', f'"{name}"'))
        directory.enable(name)
    assert {"one", "two"} <= set(catalogue(directory).ids)
    assert "inner" not in sys.modules


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (
            "raise RuntimeError('the password is swordfish')",
            "plugin:p cannot be imported: RuntimeError",
        ),
        ("import sys\nsys.exit(1)", "plugin:p cannot be imported: SystemExit"),
        ("import nonesuch", "plugin:p cannot be imported: ModuleNotFoundError"),
        ("x = 1", "plugin:p cannot be used: it brings no engine along"),
        (NATIVE.replace('"plain"', '"dag"'), "engine id 'dag' is registered already by core"),
        (NATIVE.replace('"plain"', '"default"'), "engine id 'default' is reserved"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_owner(
    directory: PluginDirectory, source: str, why: str
) -> None:
    enabled(directory, "p", source)
    assert why in refusal(directory, "plugin:p")
    assert "swordfish" not in refusal(directory, "plugin:p")
    assert "dag" in catalogue(directory).ids
    assert not [name for name in sys.modules if name == "contextengine_plugins.p.inner"]


def test_of_two_plugins_with_one_engine_the_first_stays(directory: PluginDirectory) -> None:
    enabled(directory, "a")
    enabled(directory, "b")
    assert refusal(directory, "plugin:b") == "engine id 'plain' is registered already by plugin:a"
    [kept] = [one for one in catalogue(directory).registrations if one.id == "plain"]
    assert kept.owner == "plugin:a"


def test_one_that_is_gone_is_named(directory: PluginDirectory) -> None:
    enabled(directory, "gone")
    for file in (directory.path / "gone").iterdir():
        file.unlink()
    assert "plugin:gone is enabled, and is not in" in refusal(directory, "plugin:gone")


def test_a_package_that_never_comes_back_is_refused(
    directory: PluginDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands still until the test lets it go, whatever the limit."""
    go = threading.Event()
    monkeypatch.setattr(sys, "a_test_goes_on", go, raising=False)
    enabled(directory, "slow", "import sys\nsys.a_test_goes_on.wait()")
    try:
        [slow] = engines_of(directory, 0.05)
    finally:
        go.set()
    assert isinstance(slow, PluginEngine)
    assert (slow.owner, str(slow.offer)) == (
        "plugin:slow",
        "plugin:slow cannot be imported: it did not come back within 0.05 s",
    )


def test_a_factory_that_never_comes_back_is_asked_once(directory: PluginDirectory) -> None:
    enabled(directory, "slow")
    go, asked = threading.Event(), []

    def make(options: object) -> object:
        asked.append(options)
        return go.wait()

    [slow] = [one for one in catalogue(directory).registrations if one.id == "plain"]
    hanging = replace(slow, make=make)
    registry = Registry(Catalogue().plus(hanging), patience_s=0.05)
    try:
        for _ in range(2):
            with pytest.raises(InvalidEngine) as caught:
                registry.configured("plain")
            assert str(caught.value) == (
                "engine 'plain' of plugin:slow cannot be made: it did not come back within 0.05 s"
            )
        assert len(asked) == 1, "every session would wait for it"
        registry.try_again()
        with pytest.raises(InvalidEngine):
            registry.configured("plain")
        assert len(asked) == 2
    finally:
        go.set()
