"""What a client says, read from the bodies of its requests."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from contextengine.naming import name_by_content
from contextengine.types import Message

from .dialects.dialect import Dialect
from .document import Document

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

    @property
    def model(self) -> str:
        """The model that is asked for."""
        model = self.document.value.get("model")
        return model if isinstance(model, str) else ""

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

        def known(first: str) -> Sequence[str]:
            found = self._last.get((dialect.path, named, first))
            return found.originals if found is not None else ()

        document = Document(body, dialect.listed, dialect.instructs, known)
        leading = len(document.instructions)
        originals = document.originals[leading:]
        # What begins alike may be alike for longer; what is not is read anew.
        key = (dialect.path, named, originals[0] if originals else "")
        before = self._last.pop(key, Read([], [], [], []))
        # The last one may go on with what follows it.
        stay = bisect_left(before.ends, _same(before.originals, originals))
        messages, ids, ends = before.messages[:stay], before.ids[:stay], before.ends[:stay]
        new = dialect.read(originals[ends[-1] if ends else 0 :])
        ids += name_by_content(new, ids[-1] if ids else "")
        messages += new
        for message in new:
            ends.append((ends[-1] if ends else 0) + elements_of(message))
        self._last[key] = Read(originals, messages, ids, ends)
        if len(self._last) > MOST_READ:
            self._last.popitem(last=False)
        return Request(dialect, document, leading, messages, ids)


@dataclass(frozen=True, slots=True)
class Read:
    """A conversation that was read."""

    originals: list[str]
    messages: list[Message]
    ids: list[str]
    ends: list[int]
    """How many originals each message and those before it were made of."""


def elements_of(message: Message) -> int:
    """Of how many elements of the client's list a message was made."""
    native = message.native.json
    return len(json.loads(native)) if native.startswith(b"[") else 1


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    """How many both begin with."""
    same = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        same += 1
    return same
