"""What a new user types for each host (docs/hosts.md): few commands, and each of them is there.
Those of Codex, Claude Code and Hermes are run by the tests that drive them, the examples by
test_offline_examples.py and tests/clients."""

from __future__ import annotations

import re
import shlex
import tomllib

import pytest

from tests.acceptance.shell import ROOT
from tests.hosts.walk import commands

MOST = 6
"""Commands from an empty folder to a turn."""
EACH = pytest.mark.parametrize("part", [one for one in commands() if one != "all"])
THEIRS = {"codex", "claude", "hermes", "openclaw", "npm", "node", "pip", "python", "git", "cd"}
"""Programs of the hosts and of the languages."""


def programs() -> set[str]:
    """The commands that our packages install."""
    found: set[str] = set()
    for file in [ROOT / "pyproject.toml", *ROOT.glob("integrations/*/pyproject.toml")]:
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        found |= set(project.get("scripts", {}))
    return found


@EACH
def test_a_host_takes_few_commands(part: str) -> None:
    assert 0 < len([*commands()["all"], *commands()[part]]) <= MOST


@EACH
def test_what_a_command_names_is_there(part: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for line in [*commands()["all"], *commands()[part]]:
        words = [word for word in shlex.split(line) if not re.match(r"[A-Z_]+=", word)]
        if words[0] == "make":
            assert words[1] in targets
        elif words[0] != "your-agent":
            assert words[0] in THEIRS | programs(), line
        for word in words[1:]:
            # What is built by a line before is no file of the repository.
            source = word.replace("/dist/", "/").removesuffix(".js")
            if word.startswith("./") or "/examples/" in word:
                there = [source, f"{source}.ts", f"{source}/pyproject.toml"]
                assert any((ROOT / one).exists() for one in there), word
