"""The types of settings and options: what one may write for a number, a duration, a size."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, get_args

import msgspec
from pydantic import BeforeValidator, ByteSize
from pydantic.fields import FieldInfo

SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1, "ms": 0.001}
"""The units of durations, the longest first."""

_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_BARE_SIZE_UNIT = re.compile(r"([KMG]i)$", re.IGNORECASE)


class Secret(msgspec.Struct, frozen=True):
    """Marks a field whose value is never shown, not even in an error."""


def _number(value: Any) -> Any:
    # True is 1 in Python, never in a configuration file.
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def _duration(value: Any) -> Any:
    """A number of seconds, or `1h30m`; other texts are left to pydantic, which reads ISO 8601."""
    if not isinstance(value, str):
        return _number(value)
    text = value.replace(" ", "")
    if _NUMBER.fullmatch(text):
        return float(text)
    if text and not _DURATION.sub("", text):
        parts = _DURATION.findall(text)
        return timedelta(seconds=sum(float(number) * SECONDS[unit] for number, unit in parts))
    return value


def _size(value: Any) -> Any:
    """Kubernetes writes `64Mi` for what pydantic reads as `64MiB`."""
    return _BARE_SIZE_UNIT.sub(r"\1B", value) if isinstance(value, str) else _number(value)


def _off(value: Any) -> Any:
    """YAML reads `off` without quotes as false."""
    return "off" if value is False else value


Whole = Annotated[int, BeforeValidator(_number)]
Ratio = Annotated[float, BeforeValidator(_number)]
Duration = Annotated[timedelta, BeforeValidator(_duration)]
Size = Annotated[ByteSize, BeforeValidator(_size)]
OrOff = BeforeValidator(_off)
"""Marks words of which one is `off`."""


def is_secret(field: FieldInfo) -> bool:
    """True where a field's value must never be shown, also where it may be None."""
    beside_none = (getattr(part, "__metadata__", ()) for part in get_args(field.annotation))
    return any(
        isinstance(mark, Secret) for marks in (field.metadata, *beside_none) for mark in marks
    )


def off(value: Any) -> Any:
    """None for `off`, which YAML reads as false; any other value as it is."""
    return (
        None
        if value is False or (isinstance(value, str) and value.strip().lower() == "off")
        else value
    )
