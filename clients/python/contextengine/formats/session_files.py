"""What a harness's session file holds, whatever harness wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..types import Message
from .node import FormatError, Node


@dataclass(frozen=True, slots=True)
class ModelUpdate:
    """A model that was chosen in mid-session."""

    index: int
    """The index of the first message after it."""
    model: str
    provider: str


@dataclass(frozen=True, slots=True)
class HostSummary:
    """A compaction of the harness's own: messages that are summarized."""

    id: str
    """The entry's id. Empty: it has none."""
    count: int
    """The index behind the last message that it stands for."""
    text: str
    first: int = 0
    """The index of the first message that it stands for."""


@dataclass(frozen=True, slots=True)
class EarlierName:
    """An id that a conversation had until its harness went on with it under another."""

    session_id: str
    count: int
    """How many of the messages, from the first, were said by then."""


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
    session_key: str = ""
    """The name that the harness keeps over several conversations. Empty: it has none."""
    earlier: tuple[EarlierName, ...] = ()
    """The ids that the harness gave this conversation before, the oldest first."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a session file that is a JSON object."""

    node: Node
    raw: bytes
    place: int
    """Its place among the file's entries, from 0."""
    line: int
    """The number of its line, from 1."""

    @contextmanager
    def named(self) -> Iterator[None]:
        """Errors of the format, raised within, name this line."""
        try:
            yield
        except FormatError as error:
            raise FormatError(str(error), self.line) from None
