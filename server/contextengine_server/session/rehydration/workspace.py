"""Sections of the workspace's files that come back after a compaction, by their headings.

After Comis's (packages/agent/src/context-engine/rehydration.ts): sections of AGENTS.md by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from contextengine_server.session.state import Sections

MAX_CHARS = 3_000
"""Of all sections together, as in Comis."""
CUT = "\n[cut here: the sections are longer]"
LEVELS = (2, 3)
"""Of the headings that name a section."""

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


class WorkspaceFile(msgspec.Struct, frozen=True):
    """A file of the workspace as the host gave it."""

    path: str
    text: str


def sections_of(files: Iterable[WorkspaceFile], names: Sequence[str]) -> Sections:
    """The sections of these names, each with its file's path, in the order of the names: no more
    characters than there is room for. Names are compared without case. A section ends with the next
    heading of its level or a higher one; what looks like a heading within a code fence is none."""
    left, found = MAX_CHARS, list[tuple[str, str]]()
    for file in files:
        for text in _named(file.text, names):
            if len(text) > left:
                text = text[: left - len(CUT)].rstrip() + CUT if left > len(CUT) else ""
            left -= len(text)
            if text:
                found.append((file.path, text))
    return tuple(found)


def _named(text: str, names: Sequence[str]) -> list[str]:
    lines = text.splitlines()
    headings = _headings(lines)
    ranges: list[tuple[int, int]] = []
    for name in names:
        for at, (line, level, title) in enumerate(headings):
            if level not in LEVELS or title.casefold() != name.strip().casefold():
                continue
            behind = (begins for begins, depth, _ in headings[at + 1 :] if depth <= level)
            end = next(behind, len(lines))
            # One within another comes with that.
            if not any(first <= line < last for first, last in ranges):
                ranges.append((line, end))
    return ["\n".join(lines[first:end]).strip() for first, end in ranges]


def _headings(lines: Sequence[str]) -> list[tuple[int, int, str]]:
    """The headings outside of code fences: (line, level, title)."""
    found: list[tuple[int, int, str]] = []
    fence = ""
    for number, line in enumerate(lines):
        marked = _FENCE.fullmatch(line)
        if fence:
            closes = marked is not None and not marked[2].strip()
            if closes and marked is not None and marked[1].startswith(fence):
                fence = ""
        elif marked is not None and not (marked[1][0] == "`" and "`" in marked[2]):
            fence = marked[1]
        elif (heading := _HEADING.fullmatch(line)) is not None:
            found.append((number, len(heading[1]), (heading[2] or "").strip()))
    return found
