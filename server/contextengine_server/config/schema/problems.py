"""What is wrong with settings or options, said in one way wherever they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from contextengine_server.config.schema.description import (
    joined,
    limits,
    model_of,
    show,
    type_name,
)
from contextengine_server.config.schema.types import is_secret

_SPELLED = {
    "time_delta": 'must be a duration such as "500ms", "10s", "5m" or "1h30m"',
    "byte_size": 'must be a size such as 65536, "512KiB" or "64MiB"',
    "model": "must be a mapping of names to values",
    "dict": "must be a mapping of names to values",
}
"""What is right, by the beginning of the name that pydantic has for the error."""


_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "a text",
    "list": "a list",
}
"""What is right, by the name that the documentation has for a type."""


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong with a setting: its path, and what would be right."""

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


class OptionsError(ValueError):
    """Settings or options cannot be used. `problems` holds every reason, the text says them a line
    each."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


def problems_of(error: ValidationError, model: type[BaseModel], path: str = "") -> list[Problem]:
    """What pydantic found, said with the path, the limit and what was given."""
    found = []
    for entry in error.errors(include_url=False, include_context=True):
        where, field = path, None
        at: type[BaseModel] | None = model
        for part in entry["loc"]:
            if isinstance(part, int):
                where += f"[{part}]"
                continue
            if at is not None:
                field = next((f for n, f in at.model_fields.items() if part in (n, f.alias)), None)
                at = model_of(field.annotation) if field else None
            where = joined(where, (field.alias if field else None) or part)
        found.append(Problem(where, _complaint(entry["type"], entry["msg"], entry["input"], field)))
    return found


def _complaint(kind: str, message: str, given: Any, field: FieldInfo | None) -> str:
    if kind == "missing":
        return "is required"
    if kind == "string_too_short":
        return "must not be empty"
    # A mapping or a list may hold secrets that its field does not know of.
    hidden = field is None or is_secret(field) or isinstance(given, (Mapping, list, BaseModel))
    got = "" if hidden else f", got {show(given)}"
    if kind == "literal_error" and isinstance(given, bool):
        got += ", as YAML reads on, off, yes and no without quotes"
    return _wanted(kind, message, field) + got


def _wanted(kind: str, message: str, field: FieldInfo | None) -> str:
    """What would be right."""
    if kind == "value_error":
        return message.removeprefix("Value error, ")
    spelled = next((text for name, text in _SPELLED.items() if kind.startswith(name)), "")
    if spelled or field is None:
        return spelled or _plain(message)
    if kind.startswith(("greater_than", "less_than")):
        return f"must be {_within(field)}"
    if kind == "literal_error":
        return f"must be one of {type_name(field)}"
    if kind.partition("_")[0] in {"int", "float", "bool", "string", "list", "tuple"}:
        name = type_name(field)
        return f"must be {_TYPES.get(name, f'a value of type {name}')} {_within(field)}".rstrip()
    return _plain(message)


def _within(field: FieldInfo) -> str:
    """The limits of a number; empty: there are none."""
    words = zip(("at least", "at most"), limits(field), strict=True)
    return " and ".join(
        f"{word} {limit}" if limit[0].isdigit() else limit for word, limit in words if limit
    )


def _plain(message: str) -> str:
    return message[:1].lower() + message[1:]
