"""Declared fields: units, the way from a mapping to a checked model, and their documentation.

Options of engines and the settings of the server are declared with these, so that a wrong name or
value is refused in the same words wherever it comes from.
"""

from __future__ import annotations

import difflib
import json
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic.fields import FieldInfo

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Problem:
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


@dataclass(frozen=True, slots=True)
class SettingDoc:
    """A setting as documented. `default`, `minimum` and `maximum` as one would write them; empty:
    none."""

    path: str
    type: str
    default: str
    description: str
    minimum: str = ""
    maximum: str = ""


@dataclass(frozen=True, slots=True)
class Unit:
    """Marks a field's unit: `duration` (held in seconds) or `size` (held in bytes)."""

    name: Literal["duration", "size"]


@dataclass(frozen=True, slots=True)
class Secret:
    """Marks a field whose value is never shown, not even in an error."""


_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMG]i?)?B?", re.IGNORECASE)
_BYTES = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}


def _number(value: Any) -> Any:
    # True is 1 in Python, never in a configuration file.
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def _duration(value: Any) -> Any:
    if isinstance(value, str) and not re.fullmatch(r"-?\d+(\.\d+)?", value.strip()):
        text = value.replace(" ", "")
        if not text or _DURATION.sub("", text):
            raise ValueError('must be a duration such as "500ms", "10s", "5m" or "1h30m"')
        return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION.findall(text))
    return _number(value)


def _size(value: Any) -> Any:
    if isinstance(value, str):
        match = _SIZE.fullmatch(value.strip())
        if match is None:
            raise ValueError('must be a size such as 65536, "512KiB" or "64MiB"')
        return int(float(match[1]) * _BYTES[(match[2] or "").lower()])
    return _number(value)


Whole = Annotated[int, BeforeValidator(_number)]
Ratio = Annotated[float, BeforeValidator(_number)]
Seconds = Annotated[float, Unit("duration"), BeforeValidator(_duration)]
Bytes = Annotated[int, Unit("size"), BeforeValidator(_size)]


def parse(model: type[M], data: Mapping[str, Any], path: str = "") -> M:
    """A model of `data`, whose keys may be published or Python names. Raises OptionsError with
    every problem."""
    known, problems = read_names(model, data, path)
    try:
        parsed = model.model_validate(known)
    except ValidationError as error:
        raise OptionsError([*problems, *problems_of(error, model, path)]) from None
    if problems:
        raise OptionsError(problems)
    return parsed


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`above` over `below`: mappings are merged, everything else is replaced."""
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        merged[key] = (
            merge(under, value)
            if isinstance(under, Mapping) and isinstance(value, Mapping)
            else value
        )
    return merged


def read_names(
    model: type[BaseModel], data: Mapping[str, Any], path: str = ""
) -> tuple[dict[str, Any], list[Problem]]:
    """`data` under the Python names of `model`, and a problem for every key unknown or given under
    two names."""
    fields = model.model_fields
    names = {field.alias or name: name for name, field in fields.items()} | {
        name: name for name in fields
    }
    known: dict[str, Any] = {}
    problems: list[Problem] = []
    for key, value in data.items():
        where = _join(path, str(key))
        name = names.get(str(key))
        if name is None:
            problems.append(Problem(where, _unknown(str(key), fields, path)))
            continue
        if name in known:
            problems.append(Problem(where, f"is given twice, also as {name}; keep one"))
        inner = _model_of(fields[name].annotation)
        if inner is not None and isinstance(value, Mapping):
            value, found = read_names(inner, value, where)
            problems += found
        elif inner is not None and isinstance(value, list):
            entries = []
            for index, entry in enumerate(value):
                if isinstance(entry, Mapping):
                    entry, found = read_names(inner, entry, f"{where}[{index}]")
                    problems += found
                entries.append(entry)
            value = entries
        known[name] = value
    return known, problems


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
                at = _model_of(field.annotation) if field else None
            where = _join(where, (field.alias if field else None) or part)
        found.append(Problem(where, _complaint(entry["type"], entry["msg"], entry["input"], field)))
    return found


def describe(model: type[BaseModel], path: str = "") -> list[SettingDoc]:
    """Every option of a model, nested ones by their path, in the order of declaration."""
    return list(_describe(model, path))


def _describe(model: type[BaseModel], path: str) -> Iterator[SettingDoc]:
    for name, field in model.model_fields.items():
        where = _join(path, field.alias or name)
        inner = _model_of(field.annotation)
        listed = get_origin(field.annotation) in (list, tuple)
        if inner is None or listed:
            minimum, maximum = _limits(field)
            yield SettingDoc(
                where, _type(field), _default(field), field.description or "", minimum, maximum
            )
        if inner is not None:
            yield from _describe(inner, where + "[]" if listed else where)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _unknown(key: str, fields: Mapping[str, FieldInfo], path: str) -> str:
    published = {field.alias or name: name for name, field in fields.items()}
    # Compared without case and underscores, so that another convention's spelling finds its name.
    flat = {name.replace("_", "").lower(): shown for shown, name in published.items()}
    near = difflib.get_close_matches(
        key.replace("_", "").replace("-", "").lower(), flat, n=1, cutoff=0.5
    )
    if near:
        return f"is not a known name; did you mean {_join(path, flat[near[0]])}?"
    return f"is not a known name; known here: {', '.join(sorted(published))}"


def _model_of(annotation: Any) -> type[BaseModel] | None:
    """The model inside an annotation: of a field itself, of a list's entries, or beside None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in get_args(annotation):
        found = _model_of(argument)
        if found is not None:
            return found
    return None


def _marked(field: FieldInfo, marker: type[Any]) -> Any:
    """The marker of a field, also where the annotation is `Marked | None`."""
    for entry in field.metadata:
        if isinstance(entry, marker):
            return entry
    for argument in get_args(field.annotation):
        for entry in getattr(argument, "__metadata__", ()):
            if isinstance(entry, marker):
                return entry
    return None


def is_secret(field: FieldInfo) -> bool:
    """True where a field's value must never be shown."""
    return _marked(field, Secret) is not None


def _limits(field: FieldInfo) -> tuple[str, str]:
    minimum = maximum = ""
    for entry in field.metadata:
        if (low := getattr(entry, "ge", None)) is not None:
            minimum = show(low, field)
        elif (low := getattr(entry, "gt", None)) is not None:
            minimum = "more than " + show(low, field)
        elif (high := getattr(entry, "le", None)) is not None:
            maximum = show(high, field)
        elif (high := getattr(entry, "lt", None)) is not None:
            maximum = "less than " + show(high, field)
    return minimum, maximum


def show(value: Any, field: FieldInfo | None = None) -> str:
    """A value as one would write it, in the field's unit."""
    unit = _marked(field, Unit) if field is not None else None
    if value is None:
        return "none"
    if unit is not None and isinstance(value, (int, float)) and not isinstance(value, bool):
        return _show_duration(value) if unit.name == "duration" else _show_size(int(value))
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    text = hide_credentials(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= 80 else text[:77] + "..."


def hide_credentials(text: str) -> str:
    """`text` without the user and password of any address in it."""
    return re.sub(r"//[^/@\s]*@", "//(not shown)@", text)


def _show_duration(seconds: float) -> str:
    for unit in ("d", "h", "m", "s"):
        if seconds >= _SECONDS[unit] and seconds % _SECONDS[unit] == 0:
            return f"{int(seconds / _SECONDS[unit])}{unit}"
    return f"{seconds:g}s" if seconds >= 1 or not seconds else f"{seconds * 1000:g}ms"


def _show_size(count: int) -> str:
    for unit, suffix in (("gi", "GiB"), ("mi", "MiB"), ("ki", "KiB")):
        if count and count % _BYTES[unit] == 0:
            return f"{count // _BYTES[unit]}{suffix}"
    return str(count)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return ""
    return show(field.get_default(call_default_factory=True), field)


def _type(field: FieldInfo) -> str:
    unit = _marked(field, Unit)
    arguments = [field.annotation]
    if get_origin(field.annotation) in (Union, types.UnionType):
        arguments = [
            argument for argument in get_args(field.annotation) if argument is not type(None)
        ]
    names = []
    for argument in arguments:
        if get_origin(argument) is Annotated:
            argument = get_args(argument)[0]
        if get_origin(argument) is Literal:
            names += [str(choice) for choice in get_args(argument)]
        elif get_origin(argument) in (list, tuple):
            names.append("list")
        else:
            name = getattr(argument, "__name__", str(argument))
            names.append("string" if name == "str" else name)
    return unit.name if unit is not None else " or ".join(names)


def _bounds(minimum: str, maximum: str) -> list[tuple[str, str]]:
    return [(word, limit) for word, limit in (("at least", minimum), ("at most", maximum)) if limit]


def _complaint(kind: str, message: str, given: Any, field: FieldInfo | None) -> str:
    if kind == "missing":
        return "is required"
    # A mapping or a list may hold secrets that its field does not know of.
    shown = (
        field is not None
        and not is_secret(field)
        and not isinstance(given, (Mapping, list, BaseModel))
    )
    got = f", got {show(given, field)}" if shown else ""
    if field is not None and kind in {
        "greater_than",
        "greater_than_equal",
        "less_than",
        "less_than_equal",
    }:
        minimum, maximum = _limits(field)
        limits = [
            f"{word} {limit}" if limit[0].isdigit() else limit
            for word, limit in _bounds(minimum, maximum)
        ]
        return f"must be {' and '.join(limits)}{got}"
    if kind == "value_error":
        return message.removeprefix("Value error, ") + got
    if kind in {"model_type", "model_attributes_type", "dict_type"}:
        return "must be a mapping of names to values" + got
    if field is not None and kind.partition("_")[0] in {
        "int",
        "float",
        "bool",
        "string",
        "list",
        "literal",
    }:
        if kind == "string_too_short":
            return "must not be empty"
        return (
            "must be"
            f" {'one of ' if kind == 'literal_error' else 'a value of type '}{_type(field)}{got}"
        )
    return message[:1].lower() + message[1:] + got
