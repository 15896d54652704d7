"""Engines of installed packages: ours come by the same door, and what cannot be used is listed with
why and stops nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from contextengine_server.plugins.engines import GROUP, installed_engines
from tests.unit.plugins.packages import install

SOURCE = """
from contextengine_server.engines.base import BaseEngine
from contextengine_server.engines.options import Options
from contextengine_server.engines.registration import Registration

class Plain(BaseEngine):
    id, name = "plain", "Plain"
    def plan(self, view, cell, reserved=0):
        raise NotImplementedError

ENGINE = Registration("plain", Options, Plain)
"""
OURS = ["dag", "legacy"]


@pytest.fixture(autouse=True)
def looked_for_anew() -> Iterator[None]:
    installed_engines.cache_clear()
    yield
    installed_engines.cache_clear()


def test_ours_come_in_by_the_entry_points() -> None:
    catalogue = installed_engines()
    ours = {one.id: one.owner for one in catalogue.registrations if one.id in OURS}
    assert ours == dict.fromkeys(OURS, "core")
    assert not [one for one in catalogue.refused if one.owner == "core"]


def test_an_engine_of_a_package_stands_beside_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path, SOURCE, f"[{GROUP}]\nplain = {{}}:ENGINE\n")
    catalogue = installed_engines()
    assert {*OURS, "plain"} <= set(catalogue.ids)
    (found,) = [one for one in catalogue.registrations if one.id == "plain"]
    assert found.owner == "plugin:third-party"
    assert installed_engines() is catalogue, "it is looked for once"


@pytest.mark.parametrize(
    ("source", "entry", "why"),
    [
        (
            "raise RuntimeError('the password is swordfish')",
            "plain = {}:ENGINE",
            "the plugin of engine 'plain' cannot be imported: RuntimeError",
        ),
        (SOURCE, "plain = {}:NONE", "cannot be imported: AttributeError"),
        ("ENGINE = 7", "plain = {}:ENGINE", "is of type int and no Registration"),
        (SOURCE, "other = {}:ENGINE", "entry point 'other' leads to the engine 'plain'"),
        (
            SOURCE.replace('"plain"', '"dag"'),
            "dag = {}:ENGINE",
            "engine id 'dag' is registered already by core",
        ),
        (
            SOURCE.replace('"plain"', '"default"'),
            "default = {}:ENGINE",
            "engine id 'default' is reserved",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_and_the_others_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, entry: str, why: str
) -> None:
    install(monkeypatch, tmp_path, source, f"[{GROUP}]\n{entry}\n")
    catalogue = installed_engines()
    assert set(OURS) <= set(catalogue.ids)
    (refused,) = [one for one in catalogue.refused if one.owner == "plugin:third-party"]
    assert refused.id == entry.partition(" ")[0]
    assert why in str(refused.why)
    assert "swordfish" not in str(refused.why)
