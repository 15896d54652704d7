"""What is said in a source, passage by passage: who said it, when, and what kind of text it is.

A message is one passage for what it says and one for each result in it. A summary of lesser depth
that this summarizer wrote is taken apart into the passages that it quotes, so that they are treated
as what they are. Pure; linear.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from contextengine_server.notices import parted
from contextengine_server.summarize.extractive.tools import Place, ToolUse, paths_changed, standing
from contextengine_server.summarize.request import SourceMessage

MAX_CHARS = 64 * 1024
"""Of a longer passage the head and the tail are read. It keeps the time of a summary in proportion
to its messages."""
_TAIL_CHARS = 16 * 1024

Kind = Literal["said", "output", "written", "read", "named", "summary"]
"""`named`: read of a file that users named."""

STATE = "State at the end:"
"""The line above the ledger."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ROLES = frozenset(("user", "assistant", "tool", "system", "developer", "custom", "summary"))
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY = re.compile(r"\[(\d{4}-\d\d-\d\d) [A-Z][a-z]{2}\]")
_QUOTED = re.compile(
    r"(?:#(\d{1,12}) )?(user|assistant|tool|system|developer|custom)( [^:\n]{1,140})?: "
)
_WORD = re.compile(r"\w")
_ESCAPES = re.compile(r"\\[ntr]")


class SourcePassage(msgspec.Struct, frozen=True):
    """A text of one speaker."""

    sequence: int
    """Of its message; 0: a summary quotes it without."""
    role: str
    """As in SourceMessage; `summary` for lines of a summary that quote nobody."""
    label: str
    """Who speaks: the role, with the speaker's or the tool's name and what the tool was used
    on."""
    text: str
    kind: Kind
    day: str = ""
    """The calendar day in UTC, such as `2026-01-31 Sat`; empty: unknown."""
    failed: bool = False
    """True for the result of a tool that failed."""


def day_of(time_ms: int | None) -> str:
    """The calendar day of a time in UTC, with the day of the week, by which "last Friday" can be
    resolved; empty where there is none."""
    if time_ms is None:
        return ""
    try:
        date = _EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:  # a caller's timestamp may say anything
        return ""
    return f"{date:%Y-%m-%d} {_DAYS[date.weekday()]}"


def label_of(role: str, name: str) -> str:
    """Who speaks, in one line."""
    name = " ".join(name.replace(":", " ").split())[:64]
    if role in ("user", "assistant") and name and name.casefold() not in _ROLES:
        return name
    return f"{role} {name}" if name and name != role else role


def passages_of(
    messages: Sequence[SourceMessage],
    uses: Mapping[Place, ToolUse],
    mended: Container[Place],
    named: Container[str] = frozenset(),
) -> list[SourcePassage]:
    """The passages of a source, in order. Results that only show a file, or only say that a change
    was made, are told by the ledger, and are none, but for files that are changed or `named`; so
    are failures that were mended: `mended` holds them."""
    found: list[SourcePassage] = []
    stands = standing(uses, named)
    for index, message in enumerate(messages):
        day = day_of(message.time_ms)
        if message.role == "summary":
            found += _quoted(message, day)
            continue
        words, told = parted(message.text) if message.role == "user" else (message.text, "")
        if _WORD.search(words):
            kind: Kind = "output" if message.role == "tool" else "said"
            label = label_of(message.role, message.name)
            text = bounded(words)
            found.append(SourcePassage(message.sequence, message.role, label, text, kind, day))
        if _WORD.search(told):
            # Like the output of a tool: a harness says it again where it is needed.
            found.append(
                SourcePassage(message.sequence, "system", "system", bounded(told), "output", day)
            )
        for place, result in enumerate(message.results):
            use = uses[index, place]
            if (index, place) in stands:
                files = ", ".join(path.rpartition("/")[2] for path in paths_changed(use))
                read = use.kind == "read"
                label = label_of("read" if read else "wrote", files)
                text = bounded(stands[index, place])
                code: Kind = "written"
                if read:
                    code = "named" if use.target in named else "read"
                found.append(SourcePassage(use.sequence, "assistant", label, text, code, day))
                continue
            if (index, place) in mended or (use.kind in ("read", "change") and not use.failed):
                continue
            label = label_of("tool", f"{use.tool} {use.target[:60]}".strip())
            text = plain(bounded(result.text))
            found.append(
                SourcePassage(message.sequence, "tool", label, text, "output", day, use.failed)
            )
    return found


def bounded(text: str) -> str:
    """The text, its head and its tail where it is very long."""
    if len(text) <= MAX_CHARS:
        return text
    return text[: MAX_CHARS - _TAIL_CHARS] + "\n…\n" + text[-_TAIL_CHARS:]


def plain(text: str) -> str:
    """The text of a result: JSON as lines of names with their values, without escapes."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return _ESCAPES.sub(" ", text) if '\\"' in text else text
        return "\n".join(_lines(value))
    return text


def _lines(value: object) -> Iterator[str]:
    """Each object of JSON as a line of its values, with the name that it stands under; a small one
    within the line of the object that holds it."""
    todo: list[tuple[str, object]] = [("", value)]
    while todo:
        name, one = todo.pop()
        if isinstance(one, dict):
            inside = {key: item for key, item in one.items() if _small(item)}
            if inside:
                said = "; ".join(f"{key}: {_said(item)}" for key, item in inside.items())
                yield (f"{name}: " if name else "") + said
            todo += [
                (f"{name} {key}"[-80:].strip(), item)
                for key, item in reversed(one.items())
                if key not in inside
            ]
        elif isinstance(one, list) and not _small(one):
            todo += [(name, item) for item in reversed(one)]
        else:
            yield (f"{name}: " if name else "") + _said(one)


def _small(value: object) -> bool:
    """True for a plain value, a list of them, and an object of a few of them."""
    if isinstance(value, dict):
        return len(value) <= 4 and not any(isinstance(one, dict | list) for one in value.values())
    return not isinstance(value, list) or not any(isinstance(one, dict | list) for one in value)


def _said(value: object) -> str:
    if isinstance(value, dict):
        return "(" + ", ".join(f"{key}: {_said(one)}" for key, one in value.items()) + ")"
    if isinstance(value, list):
        return ", ".join(map(_said, value))
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return " ".join(str(value).split())


def _quoted(message: SourceMessage, day: str) -> Iterator[SourcePassage]:
    """A summary's lines: what it quotes as passages of those who said it, the rest as its own."""
    rows: list[str] = []
    for row in bounded(message.text).split("\n"):
        if row.startswith(" ") and rows:
            rows[-1] += "\n" + row[1:]
        else:
            rows.append(row)
    for row in rows:
        if _DAY.fullmatch(row):
            day = row[1:-1]
            continue
        said = _QUOTED.match(row)
        if said is None:
            if _WORD.search(row) and row != STATE:
                yield SourcePassage(message.sequence, "summary", "", row, "summary", day)
            continue
        role, text = said[2], row[said.end() :]
        kind: Kind = "output" if role == "tool" else "said"
        yield SourcePassage(int(said[1] or 0), role, role + (said[3] or ""), text, kind, day)
