"""`contextengine health`: what an orchestrator asks, answered by exit status."""

from __future__ import annotations

import subprocess
import sys

from tests.acceptance.shell import Shell


def test_a_server_that_serves(shell: Shell) -> None:
    assert shell.run("health").text == "SERVING\n"
    assert shell.run("health", "--service", "contextengine.v1.Sessions").text == "SERVING\n"


def test_a_service_that_is_none(shell: Shell) -> None:
    refused = shell.run("health", "--service", "contextengine.v1.Nothing", status=2)
    assert "has no such service" in refused.err


def test_nobody_there(alone: Shell) -> None:
    refused = alone.run("health", "--address", "127.0.0.1:1", "--timeout", "2", status=1)
    assert refused.err.startswith("error: the server at 127.0.0.1:1 does not answer (UNAVAILABLE)")
    unread = alone.run("health", "--ca", "none.pem", "--address", "127.0.0.1:1", status=2)
    assert "none.pem: cannot be read" in unread.err


def test_the_command_line_runs_as_a_module(shell: Shell) -> None:
    words = [sys.executable, "-m", "contextengine_server.cli", "health"]
    done = subprocess.run(
        words, env=shell.environment(), capture_output=True, text=True, timeout=150, check=True
    )
    assert done.stdout == "SERVING\n"
