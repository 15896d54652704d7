"""The body of a request as text, so that what is not changed stays byte for byte. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from contextengine.formats.node import Span

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


Instructs = Callable[[Mapping[str, Any]], bool]
Known = Callable[[str], Sequence[str]]


def _never(_: Mapping[str, Any]) -> bool:
    return False


def _nothing(_: str) -> Sequence[str]:
    return ()


class Unreadable(ValueError):
    """A body that is no JSON object with a list of messages. It goes upstream as it is, whose
    answer says what is wrong with it."""


class Document:
    """A JSON object and where its members stand. It is read once: a conversation is long. Of its
    messages none is read that was read before."""

    def __init__(
        self, body: bytes, listed: str, instructs: Instructs = _never, known: Known = _nothing
    ) -> None:
        """`listed`: the member that holds the messages. `instructs`: whether a message that leads
        them is an instruction. `known`: the JSON of the messages of a conversation, by that of its
        first one, which is no instruction; empty: none is known. Raises Unreadable."""
        self.body = body
        self.listed = listed
        self._instructs, self._known = instructs, known
        self.value: dict[str, Any] = {}
        """The members but for the list."""
        self.instructions: list[Any] = []
        """The messages that lead the list and are instructions."""
        self.originals: list[str] = []
        """The JSON of each message as the client wrote it, those among them."""
        self._members: dict[str, Span] = {}
        try:
            self._text = body.decode()
            self._read()
        except (ValueError, IndexError, RecursionError) as error:
            raise Unreadable(str(error)) from None
        if listed not in self._members:
            raise Unreadable(f"{listed} is no list of objects")

    def raw(self, *names: str) -> str:
        """The JSON of members as the client wrote it, one a line; those that are there."""
        return "\n".join(self._members[name].text for name in names if name in self._members)

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
        for span, value in sorted(there, key=lambda one: one[0].start, reverse=True):
            text = text[: span.start] + value + text[span.start + len(span.text) :]
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
            self._members[name] = Span(text[start:at], start)
            at = self._next("}", at)
        if _space(text, at + 1) != len(text):
            raise ValueError(f"more than one value at {at}")

    def _listed(self, start: int) -> int:
        """Reads the list; where it ends."""
        text = self._text
        self.instructions, self.originals = [], []
        leads = True
        at = self._past("[", start)
        while text[at] != "]":
            if text[at] != "{":
                raise ValueError(f"an object is needed at {at}")
            value, end = _DECODER.raw_decode(text, at)
            original = text[at:end]
            if leads and self._instructs(value):
                self.instructions.append(value)
            elif leads:
                leads = False
                if before := self._known(original):
                    at = self._alike(before, at)
                    continue
            self.originals.append(original)
            at = self._next("]", end)
        return at + 1

    def _alike(self, before: Sequence[str], start: int) -> int:
        """Takes the messages from there on that are those of before; where what follows begins. An
        object says itself where it ends, so that its text need not be read."""
        text, at, gap = self._text, start, ","
        for original in before:
            if not text.startswith(original, at):
                break
            self.originals.append(original)
            end = at + len(original)
            at = end + len(gap)
            if not (text.startswith(gap, end) and text.startswith("{", at)):
                at = self._next("]", end)
                if text[at] == "]":
                    break
                gap = text[end:at]
        return at

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
