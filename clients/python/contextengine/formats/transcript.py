"""Reading files of conversations: session files of harnesses (Pi and OpenClaw, Codex, Claude Code),
OpenAI chat JSON lines, Anthropic messages JSON."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from ..types import Message
from .anthropic import from_anthropic
from .claude_code import claude_code_session, is_claude_code
from .codex_history import history
from .codex_rollout import codex_session, is_rollout
from .node import FormatError, Node, Span, elements, load, member, parse
from .openai import from_openai
from .pi_session import KINDS, pi_session
from .session_files import Entry, Transcript


class TranscriptError(ValueError):
    """A file that cannot be read as a transcript. The text names the file, the line and what is
    wrong there."""

    def __init__(self, path: Path, line: int, what: str) -> None:
        super().__init__(f"{path}:{line}: {what}")
        self.path = path
        self.line = line
        """From 1."""
        self.what = what


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a file that is a JSON object."""

    path: Path
    number: int
    raw: bytes
    node: Node

    @contextmanager
    def named(self) -> Iterator[None]:
        """Errors of the format, raised within, name this line."""
        try:
            yield
        except FormatError as error:
            raise TranscriptError(self.path, self.number, str(error)) from None


def read_transcript(path: str | PathLike[str]) -> Iterator[Transcript]:
    """The sessions of a file, one after the other. Every message keeps its original in `native`,
    byte for byte.

    The format is told by how the file begins. A JSON document: an Anthropic request `{"system": …,
    "messages": […]}`, or its messages as a list. JSON lines: a Codex rollout (`session_meta`), a
    Claude Code session (entries with a `sessionId`), entries of Pi or OpenClaw (by their
    `type`), sessions of OpenAI chat (`session_id` and `messages`), or messages of one OpenAI chat
    (`role`). Of a file with branches the one is read that ends with the last entry.
    A rollout that goes on in the middle of another file is read with that file, where it is there.
    A session that the file does not name is named for the file. The last line of a harness's file
    that is not finished, since it is being written or its writer was stopped, is left out. Raises
    TranscriptError, OSError.
    """
    file = Path(path)
    number, raw, _ = next(_lines(file), (1, b"", True))
    if not raw:
        raise TranscriptError(file, number, "the file is empty")
    try:
        value = parse(raw)
    except FormatError as error:
        # The first line of a document that stands in several, unless the name says that each line
        # is a value.
        if file.suffix == ".jsonl":
            raise TranscriptError(file, number, str(error)) from None
        return iter([_anthropic(file)])
    if isinstance(value, list) or (
        isinstance(value, dict) and "messages" in value and "session_id" not in value
    ):
        return iter([_anthropic(file)])
    if isinstance(value, dict):
        if is_rollout(value):
            return _rollout(file)
        if is_claude_code(value):
            return _harness(claude_code_session, file)
        if value.get("type") in KINDS:
            return _harness(pi_session, file)
        if "session_id" in value:
            return _openai_sessions(file)
        if "role" in value:
            return _openai_messages(file)
    raise TranscriptError(
        file, number, "no known format: an object with type, session_id, messages or role is needed"
    )


def _lines(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """The lines that hold anything, with their numbers, without line ends; and whether there was
    one."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, line.rstrip(b"\r\n"), line.endswith(b"\n")


def _objects(path: Path, *, growing: bool = False) -> Iterator[_Line]:
    """growing: somebody may be writing the last line."""
    for number, raw, ended in _lines(path):
        try:
            node, _ = load(raw)
        except FormatError as error:
            if growing and not ended:
                return
            raise TranscriptError(path, number, str(error)) from None
        yield _Line(path, number, raw, node)


def _with_unfinished(found: Transcript, path: Path) -> Transcript:
    """The session, which says so where the file's last line is not finished."""
    [(_, raw, ended)] = deque(_lines(path), maxlen=1)
    try:
        if not ended:
            load(raw)
    except FormatError:
        return replace(found, left_out={**found.left_out, "unfinished last line": 1})
    return found


def _openai_sessions(path: Path) -> Iterator[Transcript]:
    for line in _objects(path):
        with line.named():
            session_id = line.node.required("session_id")
            messages = _messages(line.node, line.raw.decode(), lambda text: from_openai([text])[0])
        yield Transcript(session_id, messages)


def _openai_messages(path: Path) -> Iterator[Transcript]:
    messages = []
    for line in _objects(path):
        with line.named():
            messages += from_openai([line.raw])
    yield Transcript(path.stem, messages)


def _harness(
    read: Callable[[Sequence[Entry], str], Transcript], path: Path
) -> Iterator[Transcript]:
    """The session of a harness's file, entry by entry."""
    entries = _entries(path)
    try:
        yield _with_unfinished(read(entries, path.stem), path)
    except FormatError as error:
        raise TranscriptError(path, error.line, str(error)) from None


def _rollout(path: Path) -> Iterator[Transcript]:
    """The thread whose last file this is."""
    try:
        segments = history(path, _entries)
        yield _with_unfinished(codex_session(segments, path.stem), path)
    except FormatError as error:
        raise TranscriptError(path, error.line, str(error)) from None


def _entries(path: Path) -> list[Entry]:
    """The lines of a harness's file."""
    entries: list[Entry] = []
    for line in _objects(path, growing=True):
        with line.named():
            line.node.required("type")
        entries.append(Entry(line.node, line.raw, len(entries), line.number))
    return entries


def _anthropic(path: Path) -> Transcript:
    try:
        text = path.read_bytes().decode()
        value: Any = parse(text)
        if isinstance(value, list):
            return Transcript(path.stem, _each(Span(text, 0), text, _from_anthropic))
        node, _ = load(text)
        system = member(text, "system").text.encode() if value.get("system") is not None else None
        messages = from_anthropic([], system) + _messages(node, text, _from_anthropic)
        return Transcript(path.stem, messages, node.text("model"))
    except UnicodeDecodeError as error:
        raise TranscriptError(path, 1, f"not UTF-8 at byte {error.start}") from None
    except FormatError as error:
        raise TranscriptError(path, error.line, str(error)) from None


def _from_anthropic(text: str) -> Message:
    return from_anthropic([text])[0]


def _messages(node: Node, text: str, read: Callable[[str], Message]) -> list[Message]:
    """The messages of the object `text`, which is `node`."""
    if not isinstance(node.value.get("messages"), list):
        raise node.error("messages", "a list is needed")
    return _each(member(text, "messages"), text, read)


def _each(array: Span, text: str, read: Callable[[str], Message]) -> list[Message]:
    """The messages of a JSON array within `text`, from the very text of each. Errors name the place
    and the line."""
    messages = []
    for index, element in enumerate(elements(array.text)):
        try:
            messages.append(read(element.text))
        except FormatError as error:
            before = text.count("\n", 0, array.start + element.start)
            raise FormatError(f"messages[{index}]: {error}", before + error.line) from None
    return messages
