"""What was done with tools, told from the calls and their results alone.

No tool is known by itself. What a call does is read from the names of its arguments (a path, a
command, an address, new text) and the words of the tool's name. Pure; linear in what it reads.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from contextengine_server.summarize.request import SourceCall, SourceMessage, SourceResult

Kind = Literal["read", "change", "command", "other"]
Place = tuple[int, int]
"""Where a result stands: the index of its message, and its index in it."""

MAX_ARGUMENT_CHARS = 1024 * 1024
"""Arguments that are longer are taken for text without names."""

_PATHS = (
    "path file_path filepath file filename target_file notebook_path relative_path".split()  # noqa: SIM905
)
_COMMANDS = ("command", "cmd", "script", "shell_command", "commands", "code")
_ADDRESSES = ("url", "uri", "href", "link")
_WRITTEN = [
    "newtext",
    "new_text",
    "new_string",
    "new_str",
    "newstring",
    "file_text",
    "insert_text",
    "replacement",
    "new_source",
    "content",
    "contents",
    "text",
    "code_edit",
]
_REPLACED = ["oldtext", "old_text", "old_string", "old_str", "oldstring", "search"]
_WHOLE = ("content", "contents", "file_text")
"""What is given under these names is all that the file holds then."""
_READS = frozenset("read view cat open show load".split())  # noqa: SIM905
_CHANGES = frozenset(
    "edit write create patch replace insert update apply delete remove rename move".split()  # noqa: SIM905
)
_SEARCHES = frozenset("grep glob find search ls list tree rg".split())  # noqa: SIM905
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.{1,300})$", re.MULTILINE)
_SHELL_READS = frozenset("cat head tail less nl bat type".split())  # noqa: SIM905
_ENTERED = re.compile(r"\s*cd\s+[^\s;&|]{1,300}\s*(?:&&|;)\s*")
_EXIT = re.compile(
    r"\b(?:exit(?:ed)?(?: with)?(?: code| status)?|exit_?code\W{1,3}|returned(?: code)?)[ :=]{0,3}"
    r"(\d{1,5})\b",
    re.IGNORECASE,
)
_WRONG = re.compile(
    r"\W{0,3}(error|fatal|traceback|exception|failed|failure)\b|\s*\{\s*\"error\"", re.IGNORECASE
)
_UNBROKEN = re.compile(r"[^\s\"'`()\[\]<>,;:!?|=]+")
_FILE = re.compile(r"\w[\w.-]{0,76}\.[A-Za-z]\w{0,5}|[^\W_]+(?:[-_]+[^\W_]+)+")
"""A file as people name it: with an ending, or of several words that hang together."""
_LONGEST_NAME = 80
_NUMBERED = re.compile(r"^ {0,8}\d{1,6}(?:\t|→|\| ?|: ?)")
"""The number that a tool puts before each line of a file."""
MAX_READ_CHARS = 64 * 1024
"""Of a file that was read; what follows is read again."""
_EDGE = 2_000
"""Characters at either end of a result in which it says how it ended."""


class ToolUse(msgspec.Struct, frozen=True):
    """A call and what came of it."""

    sequence: int
    """Of the message with the call."""
    tool: str
    kind: Kind
    target: str
    """The path, the command or the address, in one line; empty: none of them."""
    named: tuple[tuple[str, str], ...]
    """Its short arguments by their names, in order."""
    written: str
    """The text that it puts in a file; empty: none."""
    replaced: str | None
    """The text that it takes out of a file; empty: none that is named; None: all of it."""
    lines: str
    """Which lines of a file are read, such as `1-200`; empty: all, or nobody said."""
    result: str
    answered: int
    """The sequence of the message with the result; 0: none came."""
    failed: bool


def uses_of(messages: Sequence[SourceMessage]) -> dict[Place, ToolUse]:
    """What was done: by (index of the message, index of the result in it), in order of the results;
    calls without a result last, by (-1 - index of the message, index of the call).

    A result whose call is not there is a use of its own, of which only the tool's name is known.
    """
    open_calls: dict[str, deque[tuple[int, int, SourceCall]]] = {}
    found: dict[Place, ToolUse] = {}
    for index, message in enumerate(messages):
        for place, call in enumerate(message.calls):
            open_calls.setdefault(call.id, deque()).append((index, place, call))
        for place, result in enumerate(message.results):
            waiting = open_calls.get(result.id)
            if waiting:
                at, _, call = waiting.popleft()
                sequence = messages[at].sequence
            else:
                call, sequence = SourceCall(result.id, "", ""), message.sequence
            found[index, place] = _use(call, sequence, result, message.sequence)
    left = sorted((at, place, call) for calls in open_calls.values() for at, place, call in calls)
    for at, place, call in left:
        nothing = SourceResult(call.id, "", "")
        found[-1 - at, place] = _use(call, messages[at].sequence, nothing, 0)
    return found


def paths_changed(use: ToolUse) -> list[str]:
    """The files that a use changes: one, or those that a patch names."""
    return _PATCHED.findall(use.written) or [use.target]


def file_names(texts: Iterable[str]) -> list[str]:
    """The names of files in texts, without their directories, and what may be one without its
    ending, such as `oauth-selector`: in small letters, each once."""
    found: dict[str, None] = {}
    for text in texts:
        for piece in _UNBROKEN.findall(text[:MAX_READ_CHARS]):
            name = piece[-_LONGEST_NAME:].rpartition("/")[2].strip(".@")
            if _FILE.fullmatch(name):
                found[name.casefold()] = None
    return list(found)


def files_named(done: Mapping[Place, ToolUse], names: Container[str]) -> frozenset[str]:
    """The files that were read and that bear one of the names, with or without their endings."""
    reads = (use.target for use in done.values() if use.kind == "read")
    return frozenset(path for path in reads if _bears(path, names))


def _bears(path: str, names: Container[str]) -> bool:
    name = path.rpartition("/")[2].casefold()
    stem = name.rpartition(".")[0]
    return bool(name) and (name in names or (bool(stem) and stem in names))


def standing(
    done: Mapping[Place, ToolUse], named: Container[str] = frozenset()
) -> dict[Place, str]:
    """By the place of each change, the lines of what it wrote that no later change took out again;
    and by that of each read of a file that was changed before or later, or is one of those `named`,
    the lines that stand in it still and that nothing later told: what was changed once is changed
    again, by its lines, and what users named is what they want to be worked on."""
    found: dict[Place, str] = {}
    gone: dict[str, set[str]] = {}
    rewritten: set[str] = set()
    changed = {
        path for use in done.values() if _changed(use) for path in paths_changed(use) if path
    }
    shown: dict[str, set[str]] = {}
    for place, use in reversed([*done.items()]):
        wanted = use.target in changed or use.target in named
        if use.kind == "read" and wanted and use.target not in rewritten and use.answered:
            text = _still(use, gone.get(use.target, set()), shown.setdefault(use.target, set()))
            if text and not use.failed:
                found[place] = text
            continue
        if not _changed(use):
            continue
        paths, patched = paths_changed(use), _PATCHED.search(use.written) is not None
        if rewritten.issuperset(paths):
            continue
        rows, taken = use.written.splitlines(), (use.replaced or "").splitlines()
        if patched:
            taken = [row[1:] for row in rows if row.startswith("-")]
            rows = [row[1:] for row in rows if row.startswith("+")]
        out = [gone.setdefault(path, set()) for path in paths]
        text = "\n".join(row for row in rows if not any(row.strip() in one for one in out))
        if text.strip():
            found[place] = text
        for path in paths:
            shown.setdefault(path, set()).update(map(str.strip, rows))
        for one in out:
            one.update(map(str.strip, taken))
        if use.replaced is None and not patched:
            rewritten.update(paths)
    return found


def _changed(use: ToolUse) -> bool:
    return use.kind == "change" and not use.failed and bool(use.answered)


def _still(use: ToolUse, gone: Container[str], shown: set[str]) -> str:
    """The lines of a read file that are not gone, and were not `shown` by what came later."""
    rows = [_NUMBERED.sub("", row) for row in use.result[:MAX_READ_CHARS].splitlines()]
    left = [row for row in rows if row.strip() not in gone and row.strip() not in shown]
    shown.update(map(str.strip, rows))
    return "\n".join(left) if any(map(str.strip, left)) else ""


def _use(call: SourceCall, sequence: int, result: SourceResult, answered: int) -> ToolUse:
    given = _arguments(call.arguments)
    tool = " ".join((call.name or result.name).split())[:64]
    kind, target, written = _read(tool, given)
    by_name = {name.casefold(): value for name, value in given.items()}
    replaced = "\n".join(_texts(by_name, _REPLACED)) if written else ""
    whole = not replaced and any(name in by_name for name in _WHOLE)
    failed = result.failed or bool(answered and _wrong(result.text, kind))
    return ToolUse(
        sequence,
        tool,
        kind,
        target,
        tuple(_short(given)),
        written,
        None if whole else replaced,
        _lines(given),
        result.text,
        answered,
        failed,
    )


def _arguments(text: str) -> dict[str, object]:
    if len(text) <= MAX_ARGUMENT_CHARS and text.lstrip()[:1] == "{":
        try:
            given = json.loads(text)
        except (ValueError, RecursionError):
            pass
        else:
            if isinstance(given, dict):
                return given
    return {"input": text} if text.strip() else {}


def _read(tool: str, given: dict[str, object]) -> tuple[Kind, str, str]:
    """What a call does: its kind, its target, the text it writes."""
    by_name = {name.casefold(): value for name, value in given.items()}
    words = {word.casefold() for word in _WORD.findall(tool)}
    path, command = _first(by_name, _PATHS), _first(by_name, _COMMANDS)
    patch = next((text for text in map(_text, given.values()) if "*** Begin Patch" in text), "")
    if patch:
        return "change", "", patch
    if path:
        # One tool may do several things, and say which in an argument: `view`, `str_replace`.
        verbs = words | {word.casefold() for word in _WORD.findall(command)[:3]}
        written = "\n".join(_texts(by_name, _WRITTEN))
        if verbs & _READS or (verbs & _SEARCHES and not written):
            return ("read" if verbs & _READS else "other"), path, ""
        return ("change" if written or verbs & _CHANGES else "read"), path, written
    if command:
        command = _ENTERED.sub("", command, count=1)
        seen = _shown_by(command)
        return ("read", seen, "") if seen else ("command", command, "")
    address = _first(by_name, _ADDRESSES)
    return ("read", address, "") if address else ("other", "", "")


def _first(by_name: dict[str, object], names: Sequence[str]) -> str:
    for name in names:
        if text := _text(by_name.get(name)):
            return " ".join(text[:2_000].split())
    return ""


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        # A command as a list of words; of a shell that is handed a script, the script.
        return str(value[-1]) if value[:-1] and value[-2] in ("-c", "-lc") else " ".join(value)
    return ""


def _texts(by_name: dict[str, object], names: Sequence[str]) -> Iterator[str]:
    """The texts under some names, of each edit where there are several."""
    for name in names:
        value = by_name.get(name)
        if isinstance(value, str) and value:
            yield value
    edits = by_name.get("edits") or by_name.get("changes")
    for edit in edits if isinstance(edits, list) else ():
        if isinstance(edit, dict):
            inner = {str(name).casefold(): value for name, value in edit.items()}
            yield from _texts(inner, names)


def _shown_by(command: str) -> str:
    """The file that a command of a shell only shows; empty where it does anything else."""
    if any(mark in command for mark in "|;&><$`\n"):
        return ""
    words = command.split()
    if len(words) > 1 and (words[0] in _SHELL_READS or words[:2] == ["sed", "-n"]):
        return words[-1]
    return ""


def _lines(given: dict[str, object]) -> str:
    first, most = given.get("offset", given.get("start_line")), given.get("limit")
    last = given.get("end_line")
    span = given.get("view_range")
    if isinstance(span, list) and len(span) == 2:
        first, last = span
    if not isinstance(first, int):
        return ""
    if isinstance(most, int):
        last = first + most - 1
    return f"{first}-{last}" if isinstance(last, int) else f"{first}-"


def _short(given: dict[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in given.items():
        if isinstance(value, str | int | float) and (text := " ".join(str(value)[:200].split())):
            if len(text) <= 80:
                yield " ".join(name.split())[:40], text
        elif isinstance(value, list) and all(isinstance(one, str | int | float) for one in value):
            text = ", ".join(" ".join(str(one)[:80].split()) for one in value[:8])
            if text and len(value) <= 8:
                yield " ".join(name.split())[:40], text[:160]


def _wrong(result: str, kind: Kind) -> bool:
    """True where a result says itself that it is none."""
    if kind == "command":
        codes = _EXIT.findall(result[-_EDGE:]) or _EXIT.findall(result[:_EDGE])
        return bool(codes and int(codes[-1]))
    return bool(_WRONG.match(result[:_EDGE]))
