"""The example agents run as they stand, with the service and without it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

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
LANGUAGES = [name for name in EXAMPLES if name in NAMED]
ANSWERS = "It is in Utrecht, due tomorrow.\n" * 2


PATIENCE_S = 120


@pytest.fixture(scope="module")
def without() -> Iterator[dict[str, subprocess.Popen[str]]]:
    """The examples, side by side where there is no service: most of their time is waiting for
    it."""
    with ExitStack() as stack:
        yield {
            language: stack.enter_context(running(language, "127.0.0.1:1"))
            for language in LANGUAGES
        }


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_example_agent_runs(language: str, address: str) -> None:
    with running(language, address) as example:
        assert said(example) == ANSWERS


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_example_agent_runs_without_the_service(
    language: str, without: dict[str, subprocess.Popen[str]]
) -> None:
    lines = said(without[language]).splitlines(keepends=True)
    assert (
        "".join(line for line in lines if not line.startswith("the service is away: ")) == ANSWERS
    )
    assert len(lines) > 2


@contextmanager
def running(language: str, address: str) -> Iterator[subprocess.Popen[str]]:
    """An example that runs, ended at the end."""
    command = [*EXAMPLES[language], address]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as example:
        try:
            yield example
        finally:
            example.kill()


def said(example: subprocess.Popen[str]) -> str:
    """What an example prints until it ends well."""
    printed, problems = example.communicate(timeout=PATIENCE_S)
    assert example.returncode == 0, problems
    return printed
