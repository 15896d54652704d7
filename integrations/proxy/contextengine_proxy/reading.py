"""What a client says, read from the bodies of its requests."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import OrderedDict
from dataclasses import dataclass

from contextengine.naming import name_by_content
from contextengine.types import Message

from .calls import name_calls
from .dialects.dialect import Dialect
from .document import Document, Listed

MOST_READ = 128
"""Conversations that are not read anew as far as they are known."""


@dataclass(slots=True)
class Request:
    """A conversation as a client sends it."""

    dialect: Dialect
    document: Document
    leading: int
    """How many elements of the list are instructions before the conversation."""
    messages: list[Message]
    ids: list[str]
    ends: list[int]
    """How many elements of the list each message and those before it were made of, instructions not
    counted."""
    calls: list[tuple[str, ...]]
    """How the client calls the calls and results of each message."""

    def elements(self, at: int) -> list[str]:
        """The JSON of a message as the client wrote it."""
        begin = self.ends[at - 1] if at else 0
        return self.document.originals[self.leading + begin : self.leading + self.ends[at]]

    @property
    def model(self) -> str:
        """The model that is asked for."""
        return self.dialect.model(self.document.value)

    @property
    def outside(self) -> str:
        """What takes from the window besides the conversation."""
        instructions = self.document.originals[: self.leading]
        return "\n".join([*instructions, self.document.raw(*self.dialect.outside)])


class Reader:
    """Reads conversations, each time only what was not there the time before."""

    def __init__(self) -> None:
        self._last: OrderedDict[tuple[str, str, str], Read] = OrderedDict()

    def read(self, dialect: Dialect, body: bytes, named: str) -> Request:
        """The conversation of a request. Raises Unreadable, FormatError."""

        def known(first: str) -> Listed:
            found = self._last.get((dialect.path, named, first))
            return found.listed if found is not None else Listed()

        document = Document(body, dialect.listed, dialect.instructs, known, dialect.orders)
        listed = document.conversation()
        originals = listed.originals
        # What begins alike may be alike for longer; what is not is read anew.
        key = (dialect.path, named, originals[0] if originals else "")
        before = self._last.pop(key, Read(listed, [], [], [], []))
        # The last one may go on with what follows it.
        stay = bisect_left(before.ends, document.alike)
        messages, ids, ends = before.messages[:stay], before.ids[:stay], before.ends[:stay]
        calls = before.calls[:stay]
        new = dialect.read(originals[ends[-1] if ends else 0 :])
        ids += name_by_content(new, ids[-1] if ids else "")
        calls += name_calls(new, messages, calls)
        messages += new
        for message in new:
            ends.append((ends[-1] if ends else 0) + elements_of(message))
        self._last[key] = Read(listed, messages, ids, ends, calls)
        if len(self._last) > MOST_READ:
            self._last.popitem(last=False)
        return Request(dialect, document, len(document.instructions), messages, ids, ends, calls)


@dataclass(frozen=True, slots=True)
class Read:
    """A conversation that was read."""

    listed: Listed
    messages: list[Message]
    ids: list[str]
    ends: list[int]
    calls: list[tuple[str, ...]]
    """As of a Request."""


def elements_of(message: Message) -> int:
    """Of how many elements of the client's list a message was made."""
    native = message.native.json
    return len(json.loads(native)) if native.startswith(b"[") else 1
