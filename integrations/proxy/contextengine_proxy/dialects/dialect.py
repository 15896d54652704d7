"""What a dialect is."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from contextengine.formats.node import Source
from contextengine.types import Item, Message, Usage

from ..document import Document

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered, once all of it has come."""

    messages: list[Message]
    """As the API takes them back in a request. Empty: nothing that a conversation goes on with."""
    usage: Usage | None = None
    stop_reason: str = ""


@dataclass(slots=True)
class Entry:
    """One element of the list that is sent."""

    json: str
    ours: bool
    """Whether it was made here, of what the service shows in another form."""
    message: Message
    opens: bool = False
    """Whether the client's list begins with it."""


OPENER = "(The conversation goes on.)"
"""The user's line before a list that would begin with the model: many an API takes no such list."""


def joined(
    entries: Sequence[Entry], kinds: Sequence[str], one_of: Callable[[list[Json]], Json]
) -> list[str]:
    """The elements. In one stands what we made with what is beside it and of the same kind (empty:
    of none), the client's among it once: what the client wrote side by side stays so. `one_of`: one
    element of several."""
    runs: list[list[Entry]] = []
    last = ""
    for entry, kind in zip(entries, kinds, strict=True):
        taken = kind and kind == last and (entry.ours or all(one.ours for one in runs[-1]))
        if taken:
            runs[-1].append(entry)
        else:
            runs.append([entry])
        last = kind
    return [
        run[0].json if len(run) == 1 else json.dumps(one_of([json.loads(one.json) for one in run]))
        for run in runs
    ]


class StreamReader(ABC):
    """Reads a reply from its events, beside the client who gets them."""

    @abstractmethod
    def take(self, event: Mapping[str, Any]) -> None:
        """One event, the JSON of its data."""

    @abstractmethod
    def reply(self) -> Reply | None:
        """What was answered. None: the reply is not whole, or none to go on with."""


class Dialect(ABC):
    """An API. Raises FormatError, KeyError, TypeError or ValueError for what is not of it: such a
    request goes upstream as it is, such a reply is not recorded."""

    path: str
    """The end of the path that it is spoken at."""
    listed: str
    """The member of a request that holds the messages."""
    provider: str
    """The provider, where the API names one. Empty: anyone's."""
    outside: tuple[str, ...]
    """The members of a request that take from the window besides."""
    reserves: tuple[str, ...]
    """The members of which one says how long a reply may be; of one in another, both, with a dot
    between them."""

    def at(self, path: str) -> Dialect | None:
        """The dialect of a request to this path. None: it is not spoken there."""
        return self if path.rstrip("/").endswith(self.path) else None

    def model(self, body: Mapping[str, Any]) -> str:
        """The model that is asked for."""
        model = body.get("model")
        return model if isinstance(model, str) else ""

    def stands_alone(self, body: Mapping[str, Any]) -> bool:
        """Whether the request itself holds the conversation."""
        return True

    @abstractmethod
    def read(self, originals: Sequence[Source]) -> list[Message]:
        """The messages, each with its original in `native`."""

    def instructs(self, message: Mapping[str, Any]) -> bool:
        """Whether a message that leads the list is an instruction, and none of the conversation."""
        return message.get("role") in ("system", "developer")

    def orders(self, message: Mapping[str, Any]) -> bool:
        """Whether the last message of the list is an order to the provider, and none of the
        conversation. Nor is what is answered to it."""
        return False

    @abstractmethod
    def write(self, message: Message) -> list[Json]:
        """What is sent of a message that the service shows in another form."""

    def arranged(self, entries: Sequence[Entry]) -> list[str]:
        """The list in an order that the API takes."""
        return [entry.json for entry in entries]

    @abstractmethod
    def instructed(self, document: Document, text: str, leading: list[str]) -> dict[str, object]:
        """Adds `text` to the instructions: to `leading`, or as members that the request has
        instead."""

    @abstractmethod
    def whole(self, body: Mapping[str, Any]) -> Reply | None:
        """A reply that came at once."""

    @abstractmethod
    def reader(self) -> StreamReader:
        """For a reply that comes as events."""

    @abstractmethod
    def error(self, status: int, text: str) -> Json:
        """The body of an error that is ours."""


@dataclass(slots=True)
class Texts:
    """Text that comes in pieces."""

    pieces: list[str] = field(default_factory=list)

    def add(self, piece: object) -> None:
        """What is no text is none."""
        if isinstance(piece, str):
            self.pieces.append(piece)

    def __str__(self) -> str:
        return "".join(self.pieces)


def count(usage: Mapping[str, Any], *path: str) -> int | None:
    """A number of a report. None: it does not say."""
    value: Any = usage
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def verbatim(item: Item) -> bool:
    """Whether the service shows a message as it came: what it shows otherwise has no original."""
    return bool(item.message.native.format)
