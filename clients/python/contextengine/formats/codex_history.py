"""Which files hold a thread of Codex. Where a turn was taken back, or a thread forked, Codex 0.169
goes on in a file of its own: its head says up to which ordinal which file stands before it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .session_files import Entry

_NAMED = re.compile(r"-([0-9a-f-]{36})(?:_([0-9a-f-]{36}))?$")
"""`rollout-TIME-THREAD` and `rollout-TIME-THREAD_SEGMENT`."""
_ROOTS = ("sessions", "archived_sessions")
"""The folders of Codex's home under which rollouts stand, by year, month and day."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of a thread."""

    path: Path
    name: str
    """By which a later file names it: the id of the thread, or of the segment."""
    entries: Sequence[Entry]
    until: int = 2**63
    """The ordinal of the first line that the thread has left; 0: it has left the file."""


def history(path: Path, read: Callable[[Path], Sequence[Entry]]) -> list[Segment]:
    """The files whose lines lead to the end of the file `path`, which is the last of them. Among
    them are those that the thread has left altogether, so that what they hold is known to be left.
    A file that is named and not there is passed over. Raises what `read` does."""
    thread, own = _names(path)
    segments = [Segment(path, own, read(path))]
    while (base := _base(segments[0])) is not None:
        name, until = base
        found = _find(path, name, {one.path for one in segments})
        if found is None:
            break
        segments.insert(0, Segment(found, name, read(found), until))
    if len(segments) > 1 and thread:
        taken = {one.path for one in segments}
        beside = {one for one in _near(path, f"*-{thread}_*.jsonl") if one.name < path.name}
        left = sorted(beside - taken)
        segments[:0] = [Segment(one, _names(one)[1], read(one), 0) for one in left]
    return segments


def _names(path: Path) -> tuple[str, str]:
    """The id of the thread and of the file. Empty: the file's name says none."""
    named = _NAMED.search(path.stem)
    return (named[1], named[2] or named[1]) if named else ("", "")


def _base(segment: Segment) -> tuple[str, int] | None:
    payload = segment.entries[0].node.node("payload") if segment.entries else None
    base = payload.node("history_base") if payload is not None else None
    if base is None:
        return None
    return base.required("thread_id"), base.number("end_ordinal_exclusive") or 0


def _find(path: Path, name: str, taken: set[Path]) -> Path | None:
    """The file of that id. None: it is not there, or one of those that come after it."""
    if not re.fullmatch(r"[0-9a-f-]{36}", name):
        return None
    found = (one for one in _near(path, f"*[-_]{name}.jsonl") if _names(one)[1] == name)
    return next((one for one in found if one not in taken), None)


def _near(path: Path, pattern: str) -> Iterator[Path]:
    """The files of a name beside this one, then those where Codex keeps its files."""
    yield from path.parent.glob(pattern)
    root = next((one for one in path.parents if one.name in _ROOTS), None)
    if root is not None:
        yield from root.rglob(pattern)
