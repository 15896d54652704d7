"""Reading JSON of others: what is there, with the path said where it is not as it should be; and
the bytes it stood in."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from ..messages import compact_json

Source = Mapping[str, Any] | str | bytes
"""A JSON object, or its text. Of text the very bytes are kept."""

_SPACE = re.compile(r"[ \t\n\r]+")
_DECODER = json.JSONDecoder()


class FormatError(ValueError):
    """JSON that is not of the format it should be. The text names the place and what would be right
    there."""

    def __init__(self, text: str, line: int = 1) -> None:
        super().__init__(text)
        self.line = line
        """The line of the JSON text, from 1, as far as it is known."""


@dataclass(frozen=True, slots=True)
class Node:
    """A JSON object and where it stands."""

    value: Mapping[str, Any]
    path: str = ""

    def at(self, key: str) -> str:
        """The path of a member."""
        return f"{self.path}.{key}" if self.path else key

    def error(self, key: str, wanted: str) -> FormatError:
        """What to raise about a member."""
        found = f"is {self.value[key]!r:.60}" if key in self.value else "is missing"
        return FormatError(f"{self.at(key)} {found}: {wanted}")

    def text(self, key: str) -> str:
        """A string. Empty where it is absent or null."""
        value = self.value.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.error(key, "a string is needed")
        return storable(value)

    def required(self, key: str) -> str:
        """A string that is not empty."""
        text = self.text(key)
        if not text:
            raise self.error(key, "a string is needed")
        return text

    def number(self, key: str) -> int | None:
        """A whole number. None where it is absent or null."""
        value = self.value.get(key)
        if value is None:
            return None
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not abs(value) < 2**63
            or value % 1
        ):
            raise self.error(key, "a whole number of at most 64 bits is needed")
        return int(value)

    def amount(self, key: str) -> float | None:
        """A finite number. None where it is absent or null."""
        value = self.value.get(key)
        if value is None:
            return None
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            raise self.error(key, "a number is needed")
        return float(value)

    def node(self, key: str) -> Node | None:
        """An object. None where it is absent or null."""
        value = self.value.get(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise self.error(key, "an object is needed")
        return Node(value, self.at(key))

    def nodes(self, key: str) -> list[Node]:
        """A list of objects. Empty where it is absent or null."""
        value = self.value.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            raise self.error(key, "a list of objects is needed")
        return [Node(item, f"{self.at(key)}[{index}]") for index, item in enumerate(value)]

    def time(self, key: str) -> Timestamp | None:
        """A time: milliseconds since 1970, or RFC 3339. None where it is absent or null."""
        value = self.value.get(key)
        if value is None:
            return None
        time = Timestamp()
        try:
            if isinstance(value, str):
                time.FromJsonString(value)
            else:
                time.FromMilliseconds(self.number(key) or 0)
        except ValueError:
            raise self.error(key, "milliseconds since 1970 or an RFC 3339 time is needed") from None
        return time

    def rest(self, *known: str) -> bytes:
        """What else the object holds, as JSON. Empty: nothing."""
        others = {key: value for key, value in self.value.items() if key not in known}
        return compact_json(others) if others else b""


def load(source: Source) -> tuple[Node, bytes]:
    """The object, and its bytes: the very ones where text was given. Raises FormatError."""
    if isinstance(source, Mapping):
        return Node(source), compact_json(source)
    raw = source if isinstance(source, bytes) else source.encode()
    value = parse(raw)
    if not isinstance(value, Mapping):
        raise FormatError("an object is needed")
    return Node(value), raw


def parse(raw: str | bytes) -> Any:
    """The value of JSON text. Raises FormatError."""
    try:
        return json.loads(raw.decode() if isinstance(raw, bytes) else raw)
    except UnicodeDecodeError as error:
        raise FormatError(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise FormatError(f"not JSON: {error.msg} at column {error.colno}", error.lineno) from None
    except ValueError as error:
        raise FormatError(f"not readable: {error}") from None
    except RecursionError:
        raise FormatError("not readable: nested too deeply") from None


@dataclass(frozen=True, slots=True)
class Span:
    """A value within JSON text, as it stands there."""

    text: str
    start: int
    """Where it begins in the whole text."""


def members(text: str) -> Iterator[tuple[str, Span]]:
    """The members of the JSON object `text`, which parses."""
    position = _skip(text, 0) + 1
    while text[position := _skip(text, position)] != "}":
        key, position = _DECODER.raw_decode(text, position)
        start = _skip(text, _skip(text, position) + 1)  # behind the colon
        position = _DECODER.raw_decode(text, start)[1]
        yield key, Span(text[start:position], start)
        position = _comma(text, position)


def member(text: str, key: str) -> Span:
    """The first member of this name in the JSON object `text`, which parses and has it. What stands
    behind it is not looked at."""
    return next(span for name, span in members(text) if name == key)


def elements(text: str) -> Iterator[Span]:
    """The elements of the JSON array `text`, which parses."""
    position = _skip(text, 0) + 1
    while text[position := _skip(text, position)] != "]":
        start = position
        position = _DECODER.raw_decode(text, start)[1]
        yield Span(text[start:position], start)
        position = _comma(text, position)


def storable(text: str) -> str:
    """`text` with U+FFFD for lone surrogates, which JSON can escape and UTF-8 cannot say. The
    native form has them."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position) if text[position] <= " " else None
    return position if match is None else match.end()


def _comma(text: str, position: int) -> int:
    position = _skip(text, position)
    return position + 1 if text[position] == "," else position
