"""What a file of the repository refers to is in the repository: pages, their sections, and numbered
sections of a page that has them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KINDS = {".py", ".proto", ".md", ".go", ".ts", ".java", ".rs", ".toml", ".yaml", ".yml", ".json"}
RECORDED = ("tests/data/", "generated/")
"""What was recorded or made by tools."""

ELSEWHERE = {
    "AGENTS.md",
    "docs/reference/session-management-compaction.md",  # OpenClaw's
    "build/notes.md",  # made by the release
    "notes.md",
}
"""Pages that are not of this repository, each named together with whose it is."""

PAGE = re.compile(r"(?<![\w.*{-])/?((?:\.{1,2}/)?(?:[\w.-]+/)*[\w-]+\.md)(?:#([\w-]+))?(?![\w/])")
ADDRESS = re.compile(r"https?://\S+")
SECTION = re.compile(r"§ ?\d")
NUMBERED = "clients/README.md"
"""The one page whose headings have numbers."""


def files() -> Iterator[Path]:
    """The texts that people of this project wrote."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.split("\0"):
        path = ROOT / name
        if path.suffix in KINDS and path.is_file() and not name.startswith(RECORDED):
            yield path


FILES = list(files())


@cache
def anchors(page: Path) -> frozenset[str]:
    """The sections of a page, as links name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return frozenset(
        re.sub(r"[^\w -]", "", re.sub(r"\[(.+?)\]\(.+?\)", r"\1", heading).lower()).replace(
            " ", "-"
        )
        for heading in headings
    )


def wrong_references(path: Path, text: str) -> list[str]:
    """What the text refers to and is not there."""
    wrong = []
    for name, section in PAGE.findall(ADDRESS.sub("", text)):
        places = (path.parent / name, ROOT / name, ROOT / "docs" / name, ROOT / ".github" / name)
        page = next((place for place in places if place.is_file()), None)
        if page is None and name not in ELSEWHERE:
            wrong.append(f"{name} is not in the repository")
        elif page is not None and section and section not in anchors(page):
            wrong.append(f"{name} has no section #{section}")
    if path != ROOT / NUMBERED:
        wrong += [
            f"a section by its number, without a page that has numbers: {line.strip()[:100]}"
            for line in text.splitlines()
            if SECTION.search(line) and NUMBERED not in line
        ]
    return wrong


def test_whatever_is_referred_to_is_there() -> None:
    assert len(FILES) > 500
    found = {
        str(path.relative_to(ROOT)): wrong
        for path in FILES
        if path != Path(__file__) and (wrong := wrong_references(path, path.read_text("utf-8")))
    }
    assert not found


@pytest.mark.parametrize(
    "text",
    [
        "as contract.md says",
        "see design.md",
        "(docs/semantics.md#no-such-section)",
        "(contract §3, `live`)",
        "see § 4 of the design",
    ],
)
def test_a_reference_that_leads_nowhere_is_found(text: str) -> None:
    assert wrong_references(ROOT / "server" / "one.py", text)


@pytest.mark.parametrize(
    "text",
    ["docs/semantics.md#live-lists", "[api](../docs/api.md)", "clients/README.md §5", "AGENTS.md"],
)
def test_a_reference_that_leads_somewhere_is_none(text: str) -> None:
    assert not wrong_references(ROOT / "server" / "one.py", text)
