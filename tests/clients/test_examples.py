"""The example agents run as they stand, with the service and without it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.clients.drivers import JAVA, NAMED, ROOT

EXAMPLES = {
    "python": [sys.executable, str(ROOT / "clients/python/examples/agent.py")],
    "go": [str(ROOT / "build/clients/agent")],
    "typescript": ["node", str(ROOT / "clients/typescript/dist/examples/agent.js")],
    "java": ["java", "-cp", JAVA, "dev.contextengine.examples.Agent"],
    "rust": [str(ROOT / "build/rust/debug/examples/agent")],
}
"""How each example is started; its argument is the server's address."""
ANSWERS = "It is in Utrecht, due tomorrow.\n" * 2


@pytest.mark.parametrize("language", [name for name in EXAMPLES if name in NAMED])
def test_an_example_agent_runs(language: str, address: str) -> None:
    assert said(language, address) == ANSWERS


@pytest.mark.parametrize("language", [name for name in EXAMPLES if name in NAMED])
def test_an_example_agent_runs_without_the_service(language: str) -> None:
    lines = said(language, "127.0.0.1:1").splitlines(keepends=True)
    assert (
        "".join(line for line in lines if not line.startswith("the service is away: ")) == ANSWERS
    )
    assert len(lines) > 2


def said(language: str, address: str) -> str:
    """What an example prints until it ends well."""
    command = [*EXAMPLES[language], address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
