"""What a new user types first for each host (docs/hosts.md): the page's own `pip install`, into an
environment of its own, and the example, without a key, against a server of its own. At its end the
model is shown a summary; that of a host which makes its own context finds what it no longer
sees."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.acceptance.shell import ROOT, serving
from tests.hosts.walk import commands

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


PATIENCE_S = 300
"""How long a command may take: pip builds three packages, and the machine may be busy."""
PARTS = {
    "langchain": "LangChain and LangGraph",
    "openai-agents": "OpenAI Agents SDK",
    "pydantic-ai": "Pydantic AI",
    "google-adk": "Google's Agent Development Kit",
    "proxy": "Any agent, by its base URL",
    "hermes": "Hermes Agent",
    "mcp": "Cursor, and whatever else speaks MCP",
    "codex": "Codex",
    "claude-code": "Claude Code",
}
"""Where the page says how each is installed."""


def clone(folder: Path) -> Path:
    """What of the repository the page's commands name, so that pip may build in it."""
    for part in ("generated/python", "clients/python", "integrations"):
        leave = shutil.ignore_patterns("node_modules", "dist", "build", "*.egg-info")
        shutil.copytree(ROOT / part, folder / part, ignore=leave)
    return folder


def environment(folder: Path) -> dict[str, str]:
    """A new environment of Python, with what the packages stand on from the one of the tests: pip
    has no network. Packages of ours are none of it: those were installed to be edited, which only
    their own environment knows."""
    made = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", made], check=True, timeout=PATIENCE_S)
    # What older Pythons bring is too old to build with, and would stand before the other.
    pip = [str(made / "bin" / "python"), "-m", "pip", "--quiet"]
    subprocess.run([*pip, "uninstall", "--yes", "setuptools"], check=True, timeout=PATIENCE_S)
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    others = made / "lib" / python / "site-packages" / "others.pth"
    others.write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return {
        **os.environ,
        "PATH": f"{made / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "VIRTUAL_ENV": str(made),
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # none: pip reads it so
        "XDG_CACHE_HOME": str(folder),
    }


def typed(line: str, folder: Path, environment: Mapping[str, str]) -> str:
    """What a command prints that a user types."""
    done = subprocess.run(
        ["bash", "-c", line],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("host", NEEDS)
async def test_its_example_ends_with_what_the_service_is_for(host: str, tmp_path: Path) -> None:
    if not installed(NEEDS[host]):
        pytest.skip(f"{host} is not installed")
    pip, *others = commands()[PARTS[host]]
    example = f"python integrations/{host}/examples/offline.py"
    assert pip.startswith("pip install ./generated/python ./clients/python ./integrations/")
    assert example in others or not any(one.startswith("python") for one in others)
    folder = clone(tmp_path / "clone")
    told = await asyncio.to_thread(environment, tmp_path)
    await asyncio.to_thread(typed, pip, folder, told)
    with serving(tmp_path) as server:
        told["CONTEXTENGINE_ADDRESS"] = server.address
        said = await asyncio.to_thread(typed, example, folder, told)
    assert WANTED.get(host, _SUMMARIES).search(said.splitlines()[-1]), said


def test_each_package_that_is_called_from_python_has_an_example() -> None:
    found = {path.parent.parent.name for path in ROOT.glob("integrations/*/examples/offline.py")}
    assert found == set(NEEDS)
