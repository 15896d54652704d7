"""CHANGELOG.md in the form of Keep a Changelog: turning what is unreleased into a release, and
reading what a release says.

    scripts/changelog.py 0.2.0   prints what CHANGELOG.md says of a version
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
from pathlib import Path

NAME = "CHANGELOG.md"
REPOSITORY = "https://github.com/contextengine/contextengine"
UNRELEASED = "Unreleased"
HEADING = re.compile(r"^## \[([^\]]+)\].*$", re.MULTILINE)
LINKS = re.compile(r"^\[[^\]]+\]: ", re.MULTILINE)
"""The addresses of the versions stand at the end, a line each."""


def section(text: str, version: str) -> str:
    """What the changelog says of a version, or of `Unreleased`. Raises LookupError where it says
    nothing."""
    for heading in HEADING.finditer(text):
        if heading[1] == version:
            end = HEADING.search(text, heading.end()) or LINKS.search(text, heading.end())
            said = text[heading.end() : end.start() if end else len(text)].strip()
            if said:
                return said
    raise LookupError(f"{NAME} says nothing of {version}")


def released(text: str, version: str, day: datetime.date) -> str:
    """The changelog with what is unreleased as a version of that day. Raises LookupError where
    nothing is unreleased, ValueError where the version is there already."""
    section(text, UNRELEASED)
    versions = [heading[1] for heading in HEADING.finditer(text)]
    if version in versions:
        raise ValueError(f"{NAME} has {version} already")
    text = text.replace(
        f"## [{UNRELEASED}]", f"## [{UNRELEASED}]\n\n## [{version}] - {day.isoformat()}", 1
    )
    links = [f"[{UNRELEASED}]: {REPOSITORY}/compare/v{version}...HEAD"]
    earlier = versions[versions.index(UNRELEASED) + 1 :]
    if earlier:
        links.append(f"[{version}]: {REPOSITORY}/compare/v{earlier[0]}...v{version}")
    else:
        links.append(f"[{version}]: {REPOSITORY}/releases/tag/v{version}")
    said = re.sub(rf"^\[{UNRELEASED}\]: .*\n", "", text, flags=re.MULTILINE)
    first = LINKS.search(said)
    before, after = (said[: first.start()], said[first.start() :]) if first else (said, "")
    return before.rstrip() + "\n\n" + "\n".join(links) + "\n" + after


def main() -> int:
    """Exit status 1 means: the changelog says nothing of that version."""
    parser = argparse.ArgumentParser(description="Print what CHANGELOG.md says of a version.")
    parser.add_argument("version", help=f"X.Y.Z or {UNRELEASED}")
    version = parser.parse_args().version
    path = Path(__file__).resolve().parent.parent / NAME
    try:
        print(section(path.read_text(encoding="utf-8"), version))
    except LookupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
