"""Says whether the Python client, and our package for a framework, can be installed beside the
frameworks that agents are built with: none of their packages may be resolved to another version
because of them.

Asks the package index: run by `make test-host-dependencies`, and by no other test. Takes minutes.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("clients/python", "generated/python")
"""What a user of the client installs, this repository's own packages."""
HOSTS = {
    "langchain": ["integrations/langchain"],
    "langgraph": ["integrations/langchain"],
    "openai-agents": ["integrations/openai-agents"],
    "pydantic-ai": ["integrations/pydantic-ai"],
    "google-adk": ["integrations/google-adk"],
    "litellm": [],
    "crewai": [],
}
"""Frameworks, each by itself, since some of them cannot be installed beside each other; and our
packages for them."""


def requirements(packages: Iterable[str] = ()) -> list[str]:
    """What the client and some packages of this repository need from others."""
    needed: set[str] = set()
    for package in (*PACKAGES, *packages):
        project = tomllib.loads((ROOT / package / "pyproject.toml").read_text(encoding="utf-8"))
        needed |= set(project["project"]["dependencies"])
    return sorted(one for one in needed if not one.startswith("contextengine"))


def resolved(wanted: Iterable[str]) -> dict[str, str]:
    """The newest versions that fit together, by name. Raises CalledProcessError where none do."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed"]
    command += ["--quiet", "--disable-pip-version-check", "--report", "-", *wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return versions(json.loads(done.stdout))


def versions(report: Mapping[str, list[dict[str, dict[str, str]]]]) -> dict[str, str]:
    """The versions that a report of pip names."""
    found = (one["metadata"] for one in report["install"])
    return {re.sub(r"[-_.]+", "-", one["name"]).lower(): one["version"] for one in found}


def moved(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """What a host had in another version, or had not at all, once the client came; for people."""
    return [
        f"{name} {version} -> {after.get(name, 'gone')}"
        for name, version in sorted(before.items())
        if after.get(name) != version
    ]


def main() -> int:
    """Exit status 1 means: some host cannot have the client beside it as it is."""
    parser = argparse.ArgumentParser(description="Resolve the client beside agent frameworks.")
    parser.add_argument("hosts", nargs="*", default=[*HOSTS], help="packages; default: all known")
    failed = False
    for host in parser.parse_args().hosts:
        before = resolved([host])
        try:
            wrong = moved(before, resolved([host, *requirements(HOSTS.get(host, ()))]))
        except subprocess.CalledProcessError as error:
            wrong = [error.stderr.strip().splitlines()[-1]]
        failed |= bool(wrong)
        print(f"{host} {before[host]}: {'; '.join(wrong) or 'fits'}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
