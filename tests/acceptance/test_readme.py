"""The README does what it says: every command and every snippet in it is run, and output that it
shows is compared."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from contextengine import assistant, tool_call, tool_result
from contextengine.types import Message, ToolCallPart
from contextengine_server.api.pipeline.unserved import UNSERVED
from contextengine_server.config.load import load_settings
from contextengine_server.config.settings import Settings
from tests.acceptance.shell import ROOT, Shell, serving

README = (ROOT / "README.md").read_text(encoding="utf-8")
ADDRESS = "127.0.0.1:50051"
GRPCURL = (
    shutil.which(
        "grpcurl", path=f"{ROOT / '.tools' / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    )
    or ""
)
VOLATILE = {"epoch", "fingerprint", "content_hash", "context_hash", "assembly_id"}
"""Opaque names, which a change of the server may change."""
OUTER_MAKE = {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
"""What a make that runs the tests leaves in the environment, and a make below it would print."""


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def typed() -> Iterator[tuple[list[str], str]]:
    """Each command of the console blocks with the output shown under it."""
    for block in blocks("console"):
        for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, output = command.partition("\n")
            yield shlex.split(line), output


COMMANDS = [words for words, _ in typed() if words[0] == "contextengine"]
CALLS = [(words, output) for words, output in typed() if words[0] == "grpcurl"]


def test_what_is_not_served_is_said() -> None:
    """Every rpc that answers UNIMPLEMENTED is named, and no other."""
    section = README.partition("## Not served yet")[2].partition("\n## ")[0]
    said = set(re.findall(r"`(?:\w+\.)?([A-Z]\w+)`", section))
    assert {method.rpartition("/")[2] for method in UNSERVED} == said


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A shell at the root of the repository with a new server, as after `make run`."""
    with serving(tmp_path_factory.mktemp("readme")) as server:
        yield Shell(ROOT, server.address, here=True)


def test_the_readme_has_what_is_tested_here() -> None:
    assert len(COMMANDS) >= 10
    assert len(CALLS) == 3
    assert len(blocks("python")) == 2


def test_the_commands(fresh: Shell) -> None:
    """In order, as one would type them: later ones look at what earlier ones stored, and see what
    those did."""
    said = {words[1]: fresh.run(*words[1:]).text for words in COMMANDS}
    assert all(said.values())
    assert said["health"] == "SERVING\n"
    assert re.search(r"^compacted +yes$", said["compact"], re.MULTILINE)
    assert "summary of " in said["show"]
    assert "FITS: " in said["show"]


@pytest.mark.parametrize(
    ("target", "runs"),
    [("run", f"contextengine serve --address {ADDRESS}"), ("demo", "python scripts/demo.py")],
)
def test_the_first_commands(tmp_path: Path, target: str, runs: str) -> None:
    """What `make run` runs is what the rest of the README asks, and neither it nor `make demo`
    installs what only a developer needs."""
    done = subprocess.run(
        ["make", "--dry-run", target, f"RUN_VENV={tmp_path / 'new'}"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in OUTER_MAKE},
        capture_output=True,
        text=True,
        timeout=150,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == f"{tmp_path}/new/bin/{runs}"
    installed = re.findall(r" -r (\S+)", done.stdout)
    assert installed == ["requirements.lock", "deploy/build.lock"]


@pytest.mark.skipif(not GRPCURL, reason="grpcurl is not installed: `make test` does it where go is")
def test_the_calls_with_grpcurl(fresh: Shell) -> None:
    for words, output in CALLS:
        arguments = [fresh.address if word == ADDRESS else word for word in words[1:]]
        done = subprocess.run(
            [GRPCURL, *arguments], capture_output=True, text=True, timeout=150, check=True
        )
        if output.startswith("{"):
            assert lasting(json.loads(done.stdout)) == lasting(json.loads(output))
        else:
            assert done.stdout == output


def lasting(value: Any) -> Any:
    """A reply without its opaque names; that they are there is kept."""
    if isinstance(value, dict):
        return {
            key: bool(inner) if key in VOLATILE else lasting(inner) for key, inner in value.items()
        }
    return [lasting(inner) for inner in value] if isinstance(value, list) else value


def test_the_snippets(fresh: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[list[Message]] = []

    def call_the_model(system: str, messages: list[Message]) -> tuple[Message, list[ToolCallPart]]:
        asked.append(messages)
        assert system == "You help customers."
        if len(asked) == 1:
            call = tool_call("call-1", "find_order", {"case": 3})
            return assistant("", tool_calls=[call]), [call]
        return assistant("It is on its way."), []

    def run_the_tool(call: ToolCallPart) -> Message:
        return tool_result(call.call_id, f"{call.name}: shipped")

    for snippet in blocks("python"):
        exec(  # the README is ours
            compile(snippet.replace(ADDRESS, fresh.address), "README.md", "exec"),
            {"call_the_model": call_the_model, "run_the_tool": run_the_tool},
        )
    assert capsys.readouterr().out == "['Where is my order?']\n"
    assert [len(messages) for messages in asked] == [1, 3]
    status = fresh.run("status", "case-3", "--agent", "support", "--json").json()
    assert (status["message_count"], status["model"]) == ("4", "claude-sonnet-4-5")


def test_the_configuration_is_one_and_names_the_defaults(tmp_path: Path) -> None:
    [text] = blocks("yaml")
    file = tmp_path / "contextengine.yaml"
    file.write_text(text, encoding="utf-8")
    assert sum(len(group) for group in yaml.safe_load(text).values()) == 5
    assert load_settings(file, environ={}) == load_settings(environ={})


def test_the_limits_are_the_defaults() -> None:
    settings = Settings()
    shown = {
        "server.max_message_bytes": f"{settings.server.max_message_bytes >> 20} MiB",
        "sessions.max_message_bytes": f"{settings.sessions.max_message_bytes >> 20} MiB",
        "sessions.max_batch_messages": f"{settings.sessions.max_batch_messages:,}",
        "sessions.max_session_messages": f"{settings.sessions.max_session_messages:,}",
        "sessions.max_id_bytes": f"{settings.sessions.max_id_bytes} bytes",
        "server.max_concurrent_rpcs": f"{settings.server.max_concurrent_rpcs:,}",
    }
    for name, limit in shown.items():
        assert re.search(rf"\| {re.escape(limit)}[ ,].*`{re.escape(name)}`", README), name


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_target_that_is_named_is_there(page: str) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    text = (ROOT / page).read_text(encoding="utf-8")
    # Between backticks, or as a line that one types.
    named = re.findall(r"(?:`|^ {4})make ([a-z-]+)", text, re.MULTILINE)
    assert {"setup", "test", "lint"} <= set(named) <= set(targets)
