"""`contextengine project`, as it is typed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.shell import AIRLINE, Shell, serving
from tests.integration.projection.asking import TARGETS


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A shell that asks a server with the customer-service sessions."""
    directory = tmp_path_factory.mktemp("project")
    with serving(directory) as server:
        made = Shell(directory, server.address, here=True)
        made.run("import", AIRLINE, "--agent", "airline")
        yield made


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_printed_keeps_the_rules(shell: Shell, target: str) -> None:
    words = ("project", "airline-000", "--agent", "airline", "--to", target, "--budget", 4000)
    done = shell.run(*words)
    file = shell.directory / f"{target}.json"
    file.write_bytes(done.out)
    assert (
        f"keeps the rules of {target}" in shell.run("project", "--to", target, "--check", file).text
    )
    if target == "codex":
        assert "next: start (missing-thread-binding)" in done.err
        items = shell.run(*words, "--items").json()
        assert items["items"]
        framed = shell.run(*words, "--renderer", "openclaw").json()
        assert framed["input"][0]["text"].startswith("OpenClaw assembled context")


def test_a_file_that_breaks_a_rule_is_told_by_its_name(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_text(
        json.dumps(
            {
                "messages": [
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]}
                ]
            }
        )
    )
    done = shell.run("project", "--to", "anthropic", "--check", file, status=1)
    assert "A4" in done.text
    file.write_text("{")
    assert (
        "is not valid JSON"
        in shell.run("project", "--to", "anthropic", "--check", file, status=1).err
    )


def test_a_session_or_a_file_is_named(shell: Shell) -> None:
    assert "name a session" in shell.run("project", "--to", "gemini", status=2).err


def test_the_targets_are_listed(shell: Shell) -> None:
    listed = {row["name"]: row for row in shell.run("targets", "--json").json()}
    assert list(listed) == list(TARGETS)
    assert listed["codex"]["renderers"] == ["jsonl", "openclaw"]
    assert listed["gemini"]["package"].startswith("contextengine-server ")
    assert "Anthropic Messages" in shell.run("targets").text


def test_an_unknown_target_is_told_with_those_that_there_are(shell: Shell) -> None:
    done = shell.run("project", "airline-000", "--agent", "airline", "--to", "markdown", status=2)
    assert "no such target" in done.err
    assert "openai-responses" in done.err
