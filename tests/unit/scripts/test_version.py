"""All packages have one version, and setting it sets it everywhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from scripts import version

ROOT = version.ROOT
HISTORY = {"CHANGELOG.md", "tests/tracing/turn.json"}
"""What says of the past which version it was."""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A tree with the files that hold the version."""
    for path in {version.HOME, *(place.path for place in version.PLACES)}:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    return tmp_path


def said(root: Path) -> dict[str, str]:
    """The version of each package, as the package's own tool reads it."""
    found = {
        path: tomllib.loads((root / path).read_text(encoding="utf-8"))
        for path in (
            "pyproject.toml",
            "generated/python/pyproject.toml",
            "clients/python/pyproject.toml",
            "clients/rust/Cargo.toml",
        )
    }
    versions = {
        path: parsed["package" if "package" in parsed else "project"]["version"]
        for path, parsed in found.items()
    }
    lock = json.loads((root / "clients/typescript/package-lock.json").read_text(encoding="utf-8"))
    package = json.loads((root / "clients/typescript/package.json").read_text(encoding="utf-8"))
    pom = ElementTree.parse(root / "clients/java/pom.xml").getroot()
    compose = yaml.safe_load((root / "deploy/compose.yaml").read_text(encoding="utf-8"))
    go = re.search(
        r"clients/go v(\S+)$", (root / "clients/go/examples/go.mod").read_text(), re.MULTILINE
    )
    assert go is not None
    return versions | {
        "package.json": package["version"],
        "package-lock.json": lock["version"],
        "package-lock.json itself": lock["packages"][""]["version"],
        "pom.xml": pom.findtext("{http://maven.apache.org/POM/4.0.0}version", ""),
        "compose.yaml": compose["services"]["contextengine"]["image"].partition(":")[2],
        "go.mod": go[1],
    }


def requirements(root: Path) -> set[str]:
    """What our Python packages require of each other."""
    return {
        dependency
        for path in ("pyproject.toml", "clients/python/pyproject.toml")
        for dependency in tomllib.loads((root / path).read_text())["project"]["dependencies"]
        if dependency.startswith("contextengine")
    }


def test_all_packages_have_the_version_of_its_home() -> None:
    assert version.differences() == []
    assert set(said(ROOT).values()) == {version.current()}


@pytest.mark.parametrize(
    ("new", "range_"), [("2.3.14", ">=2.3,<3"), ("0.9.1", ">=0.9,<0.10")], ids=["major", "minor"]
)
def test_setting_it_sets_it_everywhere(copy: Path, new: str, range_: str) -> None:
    assert set(version.put(new, copy)) == {version.HOME, *(p.path for p in version.PLACES)}
    assert version.current(copy) == new
    assert set(said(copy).values()) == {new}
    assert requirements(copy) == {f"contextengine{range_}", f"contextengine-proto{range_}"}
    assert version.differences(copy) == []
    assert version.put(new, copy) == []


@pytest.mark.parametrize("path", sorted({place.path for place in version.PLACES}))
def test_a_place_that_differs_is_named(copy: Path, path: str) -> None:
    before = (copy / path).read_text(encoding="utf-8")
    version.put("7.8.9", copy)
    (copy / path).write_text(before, encoding="utf-8")
    found = version.differences(copy)
    assert found
    assert all(line.startswith(f"{path} says ") for line in found)


def test_a_place_that_is_gone_is_an_error(copy: Path) -> None:
    (copy / "deploy/compose.yaml").write_text("services: {}\n", encoding="utf-8")
    with pytest.raises(LookupError, match="compose"):
        version.differences(copy)
    with pytest.raises(LookupError, match="compose"):
        version.put("0.2.0", copy)
    assert version.current(copy) == version.current()


@pytest.mark.parametrize("wrong", ["1.2", "v1.2.3", "1.2.3-rc.1", "01.2.3", ""])
def test_only_x_y_z_is_a_version(copy: Path, wrong: str) -> None:
    with pytest.raises(ValueError, match="not a version"):
        version.put(wrong, copy)


def test_no_other_file_says_the_version() -> None:
    """A line that names us and the version stands in a listed place."""
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    line = re.compile(rf"contextengine.*(?<![\d.]){re.escape(version.current())}(?![\d.])")
    listed = HISTORY | {place.path for place in version.PLACES}
    found = [
        path
        for path in tracked
        if path
        and path not in listed
        and not path.startswith("tests/data/")
        and (ROOT / path).is_file()
        and line.search((ROOT / path).read_text(encoding="utf-8", errors="replace"))
    ]
    assert found == []
