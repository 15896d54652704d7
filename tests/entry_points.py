"""The engines of this working tree, for tests: as pyproject.toml names them, whatever the
environment was installed from. Several trees may share one environment, which is installed from one
of them, or from an earlier commit."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import tomllib
from importlib import metadata
from pathlib import Path

GROUP = "contextengine.engines"
ROOT = Path(__file__).parent.parent


def _declared() -> dict[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {**project["entry-points"][GROUP]}


def _installed(package: str) -> dict[str, str]:
    found = metadata.distribution(package).entry_points
    return {one.name: one.value for one in found if one.group == GROUP}


def see_those_of_this_tree(package: str = "contextengine-server") -> None:
    """Where others are installed, puts what an installation of this tree would say before them, for
    this process and those that it starts."""
    declared = _declared()
    if _installed(package) == declared:
        return
    directory = Path(tempfile.mkdtemp(prefix="entry-points-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    told = directory / f"{package.replace('-', '_')}-{metadata.version(package)}.dist-info"
    told.mkdir()
    name = f"Name: {package}\nVersion: {metadata.version(package)}\n"
    (told / "METADATA").write_text(f"Metadata-Version: 2.1\n{name}", encoding="utf-8")
    lines = "".join(f"{name} = {value}\n" for name, value in declared.items())
    others = "[console_scripts]\ncontextengine = contextengine_server.cli:main\n"
    (told / "entry_points.txt").write_text(f"{others}\n[{GROUP}]\n{lines}", encoding="utf-8")
    sys.path.insert(0, str(directory))
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(directory), before)))


see_those_of_this_tree()
