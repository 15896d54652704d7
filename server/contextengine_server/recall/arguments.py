"""What a model gave a tool. Small slips are understood (a number in quotes, a name in camel case),
the rest is explained."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

MAX_LIST = 1_000
"""Entries of one list."""
_LARGEST = 2**53


class InvalidArgument(ValueError):
    """An argument is missing or wrong. The text says what to do."""

    def __init__(self, argument: str, what: str, code: str = "invalid_value") -> None:
        super().__init__(f"{argument}: {what}")
        self.argument, self.code = argument, code


def json_object(raw: bytes) -> dict[str, Any]:
    """The arguments that a model wrote. Raises InvalidArgument."""
    try:
        value = orjson.loads(raw) if raw.strip() else {}
    except ValueError as error:
        raise InvalidArgument(
            "arguments", f"are not valid JSON ({error}): send an object", "invalid_arguments"
        ) from error
    if not isinstance(value, dict):
        raise InvalidArgument("arguments", "are not a JSON object: send one", "invalid_arguments")
    return value


class Arguments(msgspec.Struct, frozen=True):
    """Arguments by name, and the schema's properties."""

    given: Mapping[str, Any]
    properties: Mapping[str, Any]

    @classmethod
    def of(cls, raw: bytes, properties: Mapping[str, Any]) -> Arguments:
        """Reads a model's JSON. Raises InvalidArgument."""
        value = json_object(raw)
        given = {_snake(name): inner for name, inner in value.items() if inner is not None}
        for name in given:
            if name not in properties:
                known = ", ".join(properties)
                raise InvalidArgument(
                    name[:64],
                    f"is not an argument of this tool: it takes {known}",
                    "unknown_argument",
                )
        return cls(given, properties)

    def text(self, name: str, default: str | None = None) -> str:
        """A text; one without a default is required."""
        value = self.given.get(name, default)
        if value is None:
            raise InvalidArgument(name, "is required", "missing_argument")
        if not isinstance(value, str):
            raise InvalidArgument(name, "is not a string: give one")
        if default is None and not value.strip():
            raise InvalidArgument(name, "is required", "missing_argument")
        return value

    def choice(self, name: str, default: str) -> str:
        """One of the texts that the schema names."""
        value = self.given.get(name, default)
        choices = self.properties[name]["enum"]
        if value != default and value not in choices:
            raise InvalidArgument(name, f"must be one of {', '.join(choices)}")
        return str(value)

    def number(self, name: str, default: int) -> int:
        """A whole number."""
        return default if name not in self.given else _whole(name, self.given[name])

    def flag(self, name: str) -> bool:
        """True or false; false where it is not given."""
        value = self.given.get(name, False)
        if not isinstance(value, bool):
            raise InvalidArgument(name, "must be true or false")
        return value

    def texts(self, name: str) -> list[str]:
        """One text or several."""
        values = self._list(name)
        if not all(isinstance(value, str) for value in values):
            raise InvalidArgument(name, "must be a string")
        return values

    def numbers(self, name: str) -> list[int]:
        """One whole number or several."""
        return [_whole(name, value) for value in self._list(name)]

    def _list(self, name: str) -> list[Any]:
        value = self.given.get(name, [])
        values = value if isinstance(value, list) else [value]
        if len(values) > MAX_LIST:
            raise InvalidArgument(
                name, f"has {len(values)} entries, at most {MAX_LIST} are taken: call several times"
            )
        return values


def _whole(name: str, value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,15}", value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int or abs(value) > _LARGEST:
        raise InvalidArgument(name, "must be a whole number")
    return value


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", lambda match: f"_{match[0].lower()}", name)
