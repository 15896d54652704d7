"""The three distributions as wheels: everything that is in the source is in them, and a server runs
from them alone."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.acceptance.shell import ROOT, Shell, serving

PROJECTS = {
    "contextengine_proto": ROOT / "generated" / "python",
    "contextengine": ROOT / "clients" / "python",
    "contextengine_server": ROOT,
}
SOURCES = {
    "contextengine_proto": ROOT / "generated" / "python" / "contextengine_proto",
    "contextengine": ROOT / "clients" / "python" / "contextengine",
    "contextengine_server": ROOT / "server" / "contextengine_server",
}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the wheels, built from copies of the sources as a checkout has them."""
    made, checkout = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("checkout")
    tracked = subprocess.run(
        [
            "git",
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
            *map(str, SOURCES.values()),
        ]
        + [str(project / "pyproject.toml") for project in PROJECTS.values()]
        + ["LICENSE", "README.md", "clients/python/README.md"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout.split("\0")
    for name in filter(None, tracked):
        if (ROOT / name).exists():
            target = checkout / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    for project in PROJECTS.values():
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps",
                "--no-build-isolation", "--no-index"),
                *("--wheel-dir", str(made), str(checkout / project.relative_to(ROOT))),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )  # fmt: skip
    return made


@pytest.mark.parametrize("package", list(SOURCES))
def test_everything_is_in_the_wheel(wheels: Path, package: str) -> None:
    [wheel] = wheels.glob(f"{package}-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    source = SOURCES[package]
    wanted = {
        f"{package}/{path.relative_to(source)}"
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted <= names, sorted(wanted - names)
    assert not {name for name in names if name.startswith("tests/")}


def test_a_server_runs_from_the_wheels(
    wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "installed"
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
            "--target", str(place)),
            *map(str, wheels.glob("*.whl")),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )  # fmt: skip
    # What stands here comes before the editable installation.
    monkeypatch.setenv("PYTHONPATH", str(place))
    said = subprocess.run(
        [sys.executable, "-c", "import contextengine_server as s; print(s.__file__)"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=dict(os.environ),
    ).stdout
    assert said.startswith(str(place))
    with serving(tmp_path) as server:
        shell = Shell(tmp_path, server.address)
        assert shell.run("health").text == "SERVING\n"
        # Ranks, migrations and engines are looked at by the server itself.
        assert shell.run("doctor", "--json").json()["ok"]
        assert server.stop() == 0
