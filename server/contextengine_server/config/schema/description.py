"""What a declared setting looks like to people: its type, its default, its limits, a value."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from pydantic import BaseModel, ByteSize
from pydantic.fields import FieldInfo

from contextengine_server.config.schema.types import SECONDS

_NAMES: dict[Any, str] = {str: "string", timedelta: "duration", ByteSize: "size"}


class SettingDoc(msgspec.Struct, frozen=True):
    """A setting as documented. `default`, `minimum` and `maximum` as one would write them; empty:
    none."""

    path: str
    type: str
    default: str
    description: str
    minimum: str = ""
    maximum: str = ""


def describe(model: type[BaseModel], path: str = "") -> Iterator[SettingDoc]:
    """Every option of a model, nested ones by their path, in the order of declaration."""
    for name, field in model.model_fields.items():
        where = joined(path, field.alias or name)
        inner = model_of(field.annotation)
        listed = get_origin(field.annotation) in (list, tuple)
        if inner is None or listed:
            minimum, maximum = limits(field)
            required = field.is_required()
            default = "" if required else show(field.get_default(call_default_factory=True), field)
            description = field.description or ""
            yield SettingDoc(where, type_name(field), default, description, minimum, maximum)
        if inner is not None:
            yield from describe(inner, where + "[]" if listed else where)


def joined(path: str, key: str) -> str:
    """The path of a key below another."""
    return f"{path}.{key}" if path else key


def model_of(annotation: Any) -> type[BaseModel] | None:
    """The model inside an annotation: of a field itself, of a list's entries, or beside None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := model_of(part))), None)


def limits(field: FieldInfo) -> tuple[str, str]:
    """The smallest and the largest value, as one would write them; empty: none."""
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


def type_name(field: FieldInfo) -> str:
    """The type of a field's values, in words."""
    annotation = field.annotation
    parts = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else ()
    names: list[str] = []
    for part in parts or (annotation,):
        if get_origin(part) is Annotated:
            part = get_args(part)[0]
        if get_origin(part) is Literal:
            names += map(str, get_args(part))
        elif get_origin(part) in (list, tuple):
            names.append("list")
        elif part is not type(None):
            names.append(_NAMES.get(part, str(getattr(part, "__name__", part))))
    return " or ".join(names)


def show(value: Any, field: FieldInfo | None = None) -> str:
    """A value as one would write it; of a field of sizes, a number in the largest unit."""
    if value is None:
        return "none"
    if field is not None and field.annotation is ByteSize and isinstance(value, int):
        value = ByteSize(value)
    if isinstance(value, timedelta):
        return _show_duration(value)
    if isinstance(value, ByteSize):
        return _show_size(value)
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    text = hide_credentials(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= 80 else text[:77] + "..."


def hide_credentials(text: str) -> str:
    """`text` without the user and password of any address in it."""
    return re.sub(r"//[^/@\s]*@", "//(not shown)@", text)


def _show_duration(duration: timedelta) -> str:
    """In the largest unit of which it is a whole number."""
    for unit, seconds in SECONDS.items():
        if duration and duration % timedelta(seconds=seconds) == timedelta():
            return f"{duration // timedelta(seconds=seconds)}{unit}"
    return f"{duration.total_seconds():g}s"


def _show_size(size: ByteSize) -> str:
    """In the largest unit of which it is a whole number."""
    for unit in ("GiB", "MiB", "KiB"):
        if size and size.to(unit).is_integer():
            return f"{size.to(unit):.0f}{unit}"
    return str(int(size))
