"""The body of a request as text, so that what is not changed stays byte for byte. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from contextengine.formats.node import Span, elements, members


class Unreadable(ValueError):
    """A body that is no JSON object with a list of messages. It goes upstream as it is, whose
    answer says what is wrong with it."""


class Document:
    """A JSON object and where its members stand."""

    def __init__(self, body: bytes, listed: str) -> None:
        """`listed`: the member that holds the messages. Raises Unreadable."""
        self.body = body
        self.listed = listed
        try:
            self._text = body.decode()
            self.value: Any = json.loads(self._text)
        except (ValueError, RecursionError) as error:
            raise Unreadable(str(error)) from None
        given = self.value.get(listed) if isinstance(self.value, dict) else None
        if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
            raise Unreadable(f"{listed} is no list of objects")
        self.messages: list[Any] = given
        self._members = dict(members(self._text))

    def originals(self) -> list[str]:
        """The JSON of each message as the client wrote it."""
        return [element.text for element in elements(self._members[self.listed].text)]

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
        replaced = [
            (self._members[name], value) for name, value in new.items() if name in self._members
        ]
        for span, value in sorted(replaced, key=_start, reverse=True):
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


def _start(replaced: tuple[Span, str]) -> int:
    return replaced[0].start
