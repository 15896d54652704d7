"""Reading files of conversations: OpenAI chat JSON lines, Pi JSON lines, Anthropic messages
JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from ..types import Message
from .anthropic import from_anthropic
from .node import FormatError, Node, Span, elements, load, members, parse
from .openai import from_openai
from .pi_session import HostSummary, ModelUpdate, PiEntry, pi_session


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
class Transcript:
    """One session."""

    session_id: str
    messages: list[Message]
    model: str = ""
    """The model as the file's head names it. Empty: unknown."""
    provider: str = ""
    """The provider as the file's head names it. Empty: unknown."""
    updates: tuple[ModelUpdate, ...] = ()
    """Models that were chosen later, in order."""
    summaries: tuple[HostSummary, ...] = ()
    """Compactions that the harness made, in order."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """What the file holds and this is without, as people call it, and how much of it."""
    abandoned: frozenset[str] = frozenset()
    """The ids of messages that the file holds on branches that were left."""


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
    "messages": […]}`, or its messages as a list. JSON lines: entries of Pi or OpenClaw (they
    have a `type`), of which the branch is read that ends with the last entry; sessions of OpenAI
    chat (`session_id` and `messages`), or messages of one OpenAI chat (`role`).
    A session that the file does not name is named for the file. Raises TranscriptError, OSError.
    """
    file = Path(path)
    number, raw = next(_lines(file), (1, b""))
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
    for key, read in (("type", _pi), ("session_id", _openai_sessions), ("role", _openai_messages)):
        if isinstance(value, dict) and key in value:
            return read(file)
    raise TranscriptError(
        file, number, "no known format: an object with type, session_id, messages or role is needed"
    )


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that hold anything, with their numbers, without line ends."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, line.rstrip(b"\r\n")


def _objects(path: Path) -> Iterator[_Line]:
    for number, raw in _lines(path):
        try:
            node, _ = load(raw)
        except FormatError as error:
            raise TranscriptError(path, number, str(error)) from None
        yield _Line(path, number, raw, node)


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


def _pi(path: Path) -> Iterator[Transcript]:
    entries: list[PiEntry] = []
    for line in _objects(path):
        with line.named():
            line.node.required("type")
        entries.append(PiEntry(line.node, line.raw, len(entries), line.number))
    try:
        read = pi_session(entries, path.stem)
    except FormatError as error:
        raise TranscriptError(path, error.line, str(error)) from None
    yield Transcript(
        read.session_id,
        read.messages,
        read.model,
        read.provider,
        read.updates,
        read.summaries,
        read.left_out,
        read.abandoned,
    )


def _anthropic(path: Path) -> Transcript:
    try:
        text = path.read_bytes().decode()
        value: Any = parse(text)
        if isinstance(value, list):
            return Transcript(path.stem, _each(Span(text, 0), text, _from_anthropic))
        node, _ = load(text)
        system = (
            dict(members(text))["system"].text.encode() if value.get("system") is not None else None
        )
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
    return _each(dict(members(text))["messages"], text, read)


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
