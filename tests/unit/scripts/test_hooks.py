"""The hooks run what the lock pins, without network, and refuse what they should."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts import version

ROOT = version.ROOT
CONFIG = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
HOOKS: list[dict[str, Any]] = [hook for repo in CONFIG["repos"] for hook in repo["hooks"]]
COPIED = {
    ".pre-commit-config.yaml",
    "pyproject.toml",
    "scripts/commit_message.py",
    "scripts/version.py",
    version.HOME,
    *(place.path for place in version.PLACES),
}


def test_nothing_is_fetched() -> None:
    assert {repo["repo"] for repo in CONFIG["repos"]} == {"local"}
    assert {hook["language"] for hook in HOOKS} == {"system"}
    assert all("additional_dependencies" not in hook for hook in HOOKS)


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_every_hook_runs_a_tool_of_ours(hook: dict[str, Any]) -> None:
    program, *words = hook["entry"].split()
    if program == "node_modules/.bin/buf":
        assert '"@bufbuild/buf"' in (ROOT / "package.json").read_text(encoding="utf-8")
        return
    directory, _, name = program.rpartition("/")
    assert directory == ".venv/bin"
    if name == "python":
        assert (ROOT / words[0]).is_file()
    else:
        lock = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
        assert re.search(rf"^{name}==", lock, re.MULTILINE)


def test_mypy_knows_what_to_check() -> None:
    """The hook and `make lint` name no files."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    assert all((ROOT / path).is_dir() for path in settings["files"])
    assert {"server", "scripts", "tests"} <= set(settings["files"])


class Clone:
    """A repository with the hooks in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for path in COPIED:
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, directory / path)
        (directory / ".venv").symlink_to(sys.prefix)
        (directory / ".gitignore").write_text("/.venv\n")
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "user.name", "a")
        self.git("config", "user.email", "a@example.org")
        self.git("config", "commit.gpgsign", "false")
        self.git("add", ".")
        self.git("commit", "--quiet", "--no-verify", "--message", "Begin")
        self.run(".venv/bin/pre-commit", "install")

    def git(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run("git", *words)

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Every proxy is one that answers nothing; mypy has no code of ours to check here."""
        dead = dict.fromkeys(("http_proxy", "https_proxy", "ALL_PROXY"), "http://127.0.0.1:1")
        more = {"PRE_COMMIT_HOME": f"{self.directory}.cache", "SKIP": "mypy", **dead}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        return subprocess.run(
            words,
            cwd=self.directory,
            env=kept | more,
            capture_output=True,
            text=True,
            check=check,
            timeout=120,
        )

    def commit(self, message: str) -> str:
        """Commits everything; answers what the hooks said where they refused."""
        self.git("add", ".")
        done = self.run("git", "commit", "--message", message, check=False)
        return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    return Clone(tmp_path_factory.mktemp("hooks") / "clone")


def test_a_commit_that_is_well_made_is_made(clone: Clone) -> None:
    (clone.directory / "scripts" / "good.py").write_text('"""Good."""\n')
    assert clone.commit("Add what is good") == ""


def test_a_subject_that_is_too_long_is_refused(clone: Clone) -> None:
    (clone.directory / "scripts" / "subject.py").write_text('"""Good."""\n')
    assert "the subject has 73 characters" in clone.commit("x" * 73)


def test_code_that_is_not_formatted_is_mended_and_refused(clone: Clone) -> None:
    path = clone.directory / "scripts" / "format.py"
    path.write_text("import sys\nimport os\nprint( sys, os )\n")
    assert "files were modified by this hook" in clone.commit("Add what is not formatted")
    assert path.read_text() == "import os\nimport sys\n\nprint(sys, os)\n"
    assert clone.commit("Add what was mended") == ""


def test_packages_that_differ_are_refused(clone: Clone) -> None:
    path = clone.directory / "deploy" / "compose.yaml"
    before = path.read_text()
    path.write_text(before.replace(f"contextengine:{version.current()}", "contextengine:7.7.7"))
    assert "deploy/compose.yaml says 7.7.7" in clone.commit("Differ")
    path.write_text(before)
