"""What a new user runs first for each host (docs/hosts.md): its example, without a key, against a
server of its own. At its end the model is shown a summary; that of a host which makes its own
context finds what it no longer sees."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.shell import ROOT, serving

NEEDS = {
    "langchain": "langchain.agents",
    "openai-agents": "agents",
    "pydantic-ai": "pydantic_ai",
    "google-adk": "google.adk",
    "proxy": "openai",
    "hermes": "contextengine_hermes",
    "mcp": "mcp",
    "codex": "mcp",
    "claude-code": "mcp",
}
"""The module of each host that its example needs."""
_SUMMARIES = re.compile(r"\b[1-9]\d* (?:of them )?summar")
_FOUND = re.compile(r"^ctx_search finds: The door code is 4711\.$")
WANTED = {"mcp": _FOUND, "codex": _FOUND, "claude-code": _FOUND}
"""What the last line says of hosts whose model is shown no summary of ours."""


def installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


@pytest.mark.parametrize("host", NEEDS)
async def test_its_example_ends_with_what_the_service_is_for(host: str, tmp_path: Path) -> None:
    if not installed(NEEDS[host]):
        pytest.skip(f"{host} is not installed")
    example = ROOT / "integrations" / host / "examples" / "offline.py"
    with serving(tmp_path) as server:
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, str(example)],
            env={
                **os.environ,
                "CONTEXTENGINE_ADDRESS": server.address,
                "XDG_CACHE_HOME": str(tmp_path),
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=150,
        )
    assert done.returncode == 0, done.stderr
    assert WANTED.get(host, _SUMMARIES).search(done.stdout.splitlines()[-1]), done.stdout


def test_each_package_that_is_called_from_python_has_an_example() -> None:
    found = {path.parent.parent.name for path in ROOT.glob("integrations/*/examples/offline.py")}
    assert found == set(NEEDS)
