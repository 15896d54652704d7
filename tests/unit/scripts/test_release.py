"""A release is one command that changes everything or nothing, tried in a clone of what it works
on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts import changelog, version

ROOT = version.ROOT
COPIED = {
    "scripts/release.py",
    "scripts/changelog.py",
    "scripts/version.py",
    version.HOME,
    *(place.path for place in version.PLACES),
}
CHANGELOG = """# Changelog

## [Unreleased]

### Added

- What is new.

[Unreleased]: https://github.com/contextengine/contextengine/commits/main
"""
CI = """echo "ci with $(cat VERSION)" >> .git/ran; test ! -e .git/broken\n"""
MAKEFILE = """proto-image:\n\techo image of $$(cat VERSION) | tee -a .git/ran > image\n"""


class Clone:
    """A clone of a repository that has what a release reads and writes, and checks that say that
    they ran."""

    def __init__(self, directory: Path) -> None:
        origin, self.root = directory / "origin", directory / "clone"
        for path in COPIED:
            (origin / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, origin / path)
        (origin / ".ci").mkdir()
        files = {
            changelog.NAME: CHANGELOG,
            ".ci/run": CI,
            "Makefile": MAKEFILE,
            "image": "old\n",
            ".gitignore": "__pycache__/\n",
        }
        for name, text in files.items():
            (origin / name).write_text(text, encoding="utf-8")
        # The release before is where the repository stands.
        self._git(origin, "init", "--quiet", "--initial-branch=main")
        self._git(origin, "add", ".")
        self._git(origin, "commit", "--quiet", "--message", "Begin")
        self._git(directory, "clone", "--quiet", str(origin), str(self.root))
        self.head = self.git("rev-parse", "HEAD")

    def git(self, *words: str) -> str:
        return self._git(self.root, *words)

    def _git(self, directory: Path, *words: str) -> str:
        return subprocess.run(
            ["git", *words],
            cwd=directory,
            env=environment(),
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    def release(self, *words: str) -> tuple[int, str]:
        """The exit status and everything that was printed."""
        done = subprocess.run(
            [sys.executable, "scripts/release.py", *words],
            cwd=self.root,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=150,
            check=False,
        )
        return done.returncode, done.stdout

    def read(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8")

    def is_as_it_was(self) -> bool:
        here = self.git("rev-parse", "HEAD"), self.git("status", "--porcelain"), self.git("tag")
        return here == (self.head, "", "")


def environment() -> dict[str, str]:
    """Without what a hook that runs these tests would say, and with somebody who commits."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    who = {"NAME": "a", "EMAIL": "a@example.org"}
    names = {f"GIT_{role}_{key}": who[key] for role in ("AUTHOR", "COMMITTER") for key in who}
    return kept | names | {"GIT_CONFIG_GLOBAL": os.devnull, "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def newer() -> str:
    major, minor, patch = version.current().split(".")
    return f"{major}.{int(minor) + 1}.{patch}"


def test_a_release(clone: Clone) -> None:
    new = newer()
    status, said = clone.release(new)
    assert status == 0, said
    assert said.endswith(f"  git push --atomic origin main v{new} clients/go/v{new}\n")
    assert clone.read(".git/ran") == f"ci with {new}\nimage of {new}\n"
    assert version.differences(clone.root) == []
    assert version.current(clone.root) == new
    assert re.search(rf"^## \[{re.escape(new)}\] - \d{{4}}-", clone.read("CHANGELOG.md"), re.M)
    assert clone.git("status", "--porcelain") == ""
    assert clone.git("log", "-1", "--format=%s %P") == f"Release {new} {clone.head}"
    changed = clone.git("show", "--format=", "--name-only", "HEAD").split()
    assert {"VERSION", "CHANGELOG.md", "image", "clients/rust/Cargo.toml"} <= set(changed)
    for tag in (f"v{new}", f"clients/go/v{new}"):
        assert clone.git("rev-parse", f"{tag}^{{commit}}") == clone.git("rev-parse", "HEAD")
        message = clone.git("tag", "--list", "--format=%(contents)", tag)
        assert message == f"{tag}\n\n### Added\n\n- What is new."


def test_the_first_release_has_the_version_that_is_there(clone: Clone) -> None:
    status, said = clone.release(version.current())
    assert status == 0, said
    assert clone.git("tag").split() == [f"{p}v{version.current()}" for p in ("clients/go/", "")]


def test_a_dry_run_changes_nothing(clone: Clone) -> None:
    status, said = clone.release(newer(), "--dry-run")
    assert status == 0, said
    assert f"pyproject.toml is of {newer()}\n" in said
    assert re.findall(r"^then: (\S+ \S+)", said, re.MULTILINE) == [
        "bash .ci/run",
        "make proto-image",
        "git commit",
        "git tag",
    ]
    assert clone.is_as_it_was()
    assert not (clone.root / ".git" / "ran").exists()


def test_a_check_that_fails_leaves_everything_as_it_was(clone: Clone) -> None:
    (clone.root / ".git" / "broken").touch()
    status, said = clone.release(newer())
    assert status == 1
    assert said.endswith("`bash .ci/run` failed: nothing is released\n")
    assert clone.is_as_it_was()


def another_branch(clone: Clone) -> None:
    clone.git("checkout", "--quiet", "-b", "other")


def a_changed_file(clone: Clone) -> None:
    (clone.root / "Makefile").write_text("# changed\n")


def a_new_file(clone: Clone) -> None:
    (clone.root / "new").touch()


def a_tag(clone: Clone) -> None:
    clone.git("tag", f"clients/go/v{newer()}")


def nothing_new(clone: Clone) -> None:
    clone.release(version.current())


@pytest.mark.parametrize(
    ("prepare", "wanted", "reason"),
    [
        (another_branch, newer(), "this is the branch other: releases are made on main"),
        (a_changed_file, newer(), "the tree is not clean"),
        (a_new_file, newer(), "the tree is not clean"),
        (a_tag, newer(), f"there is a tag already: clients/go/v{newer()}"),
        (nothing_new, newer(), "CHANGELOG.md says nothing of Unreleased"),
        (lambda _: None, "0.0.1", f"0.0.1 is older than the present version, {version.current()}"),
        (lambda _: None, "1.0", "'1.0' is not a version: X.Y.Z is"),
    ],
)
def test_what_is_refused(
    clone: Clone, prepare: Callable[[Clone], None], wanted: str, reason: str
) -> None:
    prepare(clone)
    before = clone.git("rev-parse", "HEAD"), clone.git("status", "--porcelain"), clone.git("tag")
    status, said = clone.release(wanted)
    assert status == 1
    assert said.startswith(reason)
    after = clone.git("rev-parse", "HEAD"), clone.git("status", "--porcelain"), clone.git("tag")
    assert after == before
