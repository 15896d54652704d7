"""The body of a request as text, so that what is not changed stays byte for byte. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Listed:
    """The messages of a conversation as they stood in a list."""

    originals: Sequence[str] = ()
    """The JSON of each."""
    text: str = ""
    """All of them, from where the first begins to where the last one ends."""


Tells = Callable[[Mapping[str, Any]], bool]
Known = Callable[[str], Listed]


def _never(_: Mapping[str, Any]) -> bool:
    return False


def _nothing(_: str) -> Listed:
    return Listed()


class Unreadable(ValueError):
    """A body that is no JSON object with a list of messages. It goes upstream as it is, whose
    answer says what is wrong with it."""


class Document:
    """A JSON object and where its members stand. It is read once: a conversation is long. Of its
    messages none is read that was read before."""

    def __init__(
        self,
        body: bytes,
        listed: str,
        instructs: Tells = _never,
        known: Known = _nothing,
        orders: Tells = _never,
    ) -> None:
        """`listed`: the member that holds the messages. `instructs`: whether a message that leads
        them is an instruction. `known`: a conversation that was read before, by the JSON of its
        first message, which is no instruction; empty: none is known. `orders`: whether the last
        message is an order to the provider. Raises Unreadable."""
        self.body = body
        self.listed = listed
        self._instructs, self._known, self._orders = instructs, known, orders
        self.value: dict[str, Any] = {}
        """The members but for the list."""
        self.instructions: list[Any] = []
        """The messages that lead the list and are instructions."""
        self.originals: list[str] = []
        """The JSON of each message as the client wrote it, those among them."""
        self.order: list[str] = []
        """The JSON of what stands behind the messages and is an order; of one at most."""
        self.alike = 0
        """How many messages of the conversation, from its first, are those of the known one."""
        self._conversation = 0, 0
        self._members: dict[str, tuple[int, int]] = {}
        """Where each member's value begins and ends."""
        try:
            self._text = body.decode()
            self._read()
        except (ValueError, IndexError, RecursionError) as error:
            raise Unreadable(str(error)) from None
        if listed not in self._members:
            raise Unreadable(f"{listed} is no list of objects")

    def conversation(self) -> Listed:
        """The messages without the instructions."""
        start, end = self._conversation
        return Listed(self.originals[len(self.instructions) :], self._text[start:end])

    def raw(self, *names: str) -> str:
        """The JSON of members as the client wrote it, one a line; those that are there."""
        spans = [self._members[name] for name in names if name in self._members]
        return "\n".join(self._text[start:end] for start, end in spans)

    def changed(self, messages: Sequence[str] | None, others: dict[str, object]) -> bytes:
        """The body with this list of messages, each as JSON, and these members in place of what was
        there. `messages` None: the client's own."""
        new = {name: json.dumps(value) for name, value in others.items()}
        if messages is not None:
            new[self.listed] = f"[{','.join(messages)}]"
        if not new:
            return self.body
        text = self._text
        there = [
            (self._members[name], value) for name, value in new.items() if name in self._members
        ]
        for (start, end), value in sorted(there, reverse=True):
            text = text[:start] + value + text[end:]
        added = [
            f"{json.dumps(name)}:{value}"
            for name, value in new.items()
            if name not in self._members
        ]
        if added:
            begin = text.index("{") + 1
            text = text[:begin] + ",".join(added) + "," + text[begin:]
        return text.encode()

    def _read(self) -> None:
        """Raises ValueError or IndexError for what is no JSON object."""
        text = self._text
        at = self._past("{", 0)
        while text[at] != "}":
            name, at = _DECODER.raw_decode(text, at)
            if not isinstance(name, str):
                raise ValueError(f"a name is needed at {at}")
            start = at = self._past(":", at)
            if name == self.listed:
                at = self._listed(start)
            else:
                self.value[name], at = _DECODER.raw_decode(text, start)
            self._members[name] = start, at
            at = self._next("}", at)
        if _space(text, at + 1) != len(text):
            raise ValueError(f"more than one value at {at}")

    def _listed(self, start: int) -> int:
        """Reads the list; where it ends."""
        text = self._text
        self.instructions, self.originals, self.order, self.alike = [], [], [], 0
        value: dict[str, Any] = {}
        first = end = previous = 0
        at = self._past("[", start)
        while text[at] != "]":
            if text[at] != "{":
                raise ValueError(f"an object is needed at {at}")
            previous = end
            value, end = _DECODER.raw_decode(text, at)
            original = text[at:end]
            if not first and self._instructs(value):
                self.instructions.append(value)
                self.originals.append(original)
            elif not first and (before := self._known(original)).originals:
                first, end, value = at, self._alike(before, at), {}
            else:
                first = first or at
                self.originals.append(original)
            at = self._next("]", end)
        if first and self._orders(value):
            self.order, end = [self.originals.pop()], previous
        self._conversation = first, end
        return at + 1

    def _alike(self, before: Listed, start: int) -> int:
        """Takes the messages from there on that are those of before; where the last of them ends.
        An object says itself where it ends, so that its text need not be read."""
        text = self._text
        if text.startswith(before.text, start):
            self.originals.extend(before.originals)
            self.alike = len(before.originals)
            return start + len(before.text)
        at, end = start, start
        for original in before.originals:
            if not text.startswith(original, at):
                break
            self.originals.append(original)
            self.alike += 1
            end = at + len(original)
            at = self._next("]", end)
            if text[at] == "]":
                break
        return end

    def _past(self, sign: str, at: int) -> int:
        """Where what follows the sign begins."""
        at = _space(self._text, at)
        if self._text[at] != sign:
            raise ValueError(f"{sign} is needed at {at}")
        return _space(self._text, at + 1)

    def _next(self, end: str, at: int) -> int:
        """Where the next one begins, or the end is."""
        at = _space(self._text, at)
        if self._text[at] == end:
            return at
        at = self._past(",", at)
        if self._text[at] == end:
            raise ValueError(f"one more is needed at {at}")
        return at


def _space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()
