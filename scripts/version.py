"""The one version of all packages of this repository.

It stands in the file VERSION. Every place that must repeat it, because its own tool reads it there,
is listed here, and set or checked from that file:

    scripts/version.py           prints the version
    scripts/version.py --check   fails where a place says another one
    scripts/version.py 0.2.0     sets it everywhere
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
HOME = "VERSION"
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
"""X.Y.Z and nothing behind it: PyPI, npm, Maven, crates.io and Go spell pre-releases each in
another way."""


class Place(NamedTuple):
    """Where a file repeats the version."""

    path: str
    """From the root of the repository."""
    pattern: str
    """A regular expression over lines. Its one group is what depends on the version; it is found
    at least once."""
    is_range: bool = False
    """The group is a range of compatible versions, as one package of ours requires another."""


SIBLINGS = r'^    "contextengine(?:-proto)?(>=[^"]+)"'
PLACES = (
    Place("pyproject.toml", r'^version = "(.+)"'),
    Place("pyproject.toml", SIBLINGS, is_range=True),
    Place("generated/python/pyproject.toml", r'^version = "(.+)"'),
    Place("native/pyproject.toml", r'^version = "(.+)"'),
    Place("native/Cargo.toml", r'^version = "(.+)"'),
    Place("clients/python/pyproject.toml", r'^version = "(.+)"'),
    Place("clients/python/pyproject.toml", SIBLINGS, is_range=True),
    Place("integrations/hermes/pyproject.toml", r'^version = "(.+)"'),
    Place("integrations/hermes/pyproject.toml", SIBLINGS, is_range=True),
    Place("integrations/langchain/pyproject.toml", r'^version = "(.+)"'),
    Place("integrations/langchain/pyproject.toml", SIBLINGS, is_range=True),
    Place("integrations/mcp/pyproject.toml", r'^version = "(.+)"'),
    Place("integrations/mcp/pyproject.toml", SIBLINGS, is_range=True),
    Place("integrations/proxy/pyproject.toml", r'^version = "(.+)"'),
    Place("integrations/proxy/pyproject.toml", SIBLINGS, is_range=True),
    Place("integrations/google-adk/pyproject.toml", r'^version = "(.+)"'),
    Place("integrations/google-adk/pyproject.toml", SIBLINGS, is_range=True),
    Place("integrations/openai-agents/pyproject.toml", r'^version = "(.+)"'),
    Place("integrations/openai-agents/pyproject.toml", SIBLINGS, is_range=True),
    Place("integrations/pydantic-ai/pyproject.toml", r'^version = "(.+)"'),
    Place("integrations/pydantic-ai/pyproject.toml", SIBLINGS, is_range=True),
    Place("integrations/openclaw/package.json", r'^  "version": "(.+)"'),
    Place("integrations/openclaw/package.json", r'^    "@contextengine/client": "(.+)"'),
    Place("integrations/ai-sdk/package.json", r'^  "version": "(.+)"'),
    Place("integrations/ai-sdk/package.json", r'^    "@contextengine/client": "(.+)"'),
    Place("integrations/openclaw/openclaw.plugin.json", r'^  "version": "(.+)"'),
    Place("integrations/openclaw/src/engine.ts", r'^const VERSION = "(.+)"'),
    Place("integrations/codex/.codex-plugin/plugin.json", r'^  "version": "(.+)"'),
    Place("integrations/claude-code/.claude-plugin/plugin.json", r'^  "version": "(.+)"'),
    Place("clients/typescript/package.json", r'^  "version": "(.+)"'),
    Place(
        "clients/typescript/package-lock.json",
        r'"name": "@contextengine/client",\n +"version": "(.+)"',
    ),
    Place(
        "clients/java/pom.xml",
        r"<artifactId>contextengine-client</artifactId>\n +<version>(.+)</version>",
    ),
    Place(
        "clients/java/README.md",
        r"<artifactId>contextengine-client</artifactId>\n +<version>(.+)</version>",
    ),
    Place("clients/rust/Cargo.toml", r'^name = "contextengine"\nversion = "(.+)"'),
    Place("clients/go/examples/go.mod", r"contextengine/clients/go v(.+)"),
    Place("clients/README.md", r"contextengine-client-(.+)\.tgz"),
    Place("deploy/compose.yaml", r"image: contextengine:(.+)"),
    Place("deploy/compose.replicas.yaml", r"image: contextengine:(.+)"),
    Place("deploy/helm/contextengine/Chart.yaml", r"^version: (.+)"),
    Place("deploy/helm/contextengine/Chart.yaml", r'^appVersion: "(.+)"'),
)


def current(root: Path = ROOT) -> str:
    """The version, from its home. Raises ValueError where that is not X.Y.Z."""
    return checked((root / HOME).read_text(encoding="utf-8").strip())


def checked(version: str) -> str:
    """The version itself. Raises ValueError where it is not X.Y.Z."""
    if VERSION.fullmatch(version) is None:
        raise ValueError(f"{version!r} is not a version: X.Y.Z is")
    return version


def compatible(version: str) -> str:
    """The range of versions that go together with this one: those of its minor version before
    1.0.0, those of its major version from there on."""
    major, minor, _ = version.split(".")
    if major == "0":
        return f">=0.{minor},<0.{int(minor) + 1}"
    return f">={major}.{minor},<{int(major) + 1}"


def differences(root: Path = ROOT) -> list[str]:
    """What does not agree with the version, a line each. Raises LookupError where a listed place
    is not there any more."""
    version = current(root)
    found = []
    for place in PLACES:
        wanted = _wanted(place, version)
        found += [
            f"{place.path} says {match[1]}, not {wanted}"
            for match in _matches(place, (root / place.path).read_text(encoding="utf-8"))
            if match[1] != wanted
        ]
    return found


def put(version: str, root: Path = ROOT) -> list[str]:
    """Writes the version into its home and every place; answers the paths that changed. Raises
    ValueError where it is not X.Y.Z, LookupError where a listed place is not there any more."""
    texts = {HOME: f"{checked(version)}\n"}
    for place in PLACES:
        text = texts.get(place.path) or (root / place.path).read_text(encoding="utf-8")
        for match in reversed(_matches(place, text)):
            text = text[: match.start(1)] + _wanted(place, version) + text[match.end(1) :]
        texts[place.path] = text
    changed = [
        path for path, text in texts.items() if (root / path).read_text(encoding="utf-8") != text
    ]
    for path in changed:
        (root / path).write_text(texts[path], encoding="utf-8")
    return changed


def _wanted(place: Place, version: str) -> str:
    return compatible(version) if place.is_range else version


def _matches(place: Place, text: str) -> list[re.Match[str]]:
    found = list(re.finditer(place.pattern, text, re.MULTILINE))
    if not found:
        raise LookupError(f"{place.path} has nothing like {place.pattern}: mend {Path(__file__)}")
    return found


def main() -> int:
    """Exit status 1 means: a place says another version."""
    parser = argparse.ArgumentParser(description="Print, check or set the version.")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--check", action="store_true", help="write nothing; fail on differences")
    choice.add_argument("version", nargs="?", type=checked, help="the version to set, X.Y.Z")
    arguments = parser.parse_args()
    if arguments.check:
        found = differences()
        for line in found:
            print(line, file=sys.stderr)
        return 1 if found else 0
    if arguments.version is not None:
        for path in put(arguments.version):
            print(path)
    else:
        print(current())
    return 0


if __name__ == "__main__":
    sys.exit(main())
