"""What an engine is registered with, and what keeps it from being registered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from pydantic import BaseModel

from .contract import Engine

ENGINE_ID = re.compile(r"[A-Za-z0-9@][A-Za-z0-9@._/:-]*")
"""Letters, digits and @ . _ / : - only."""

RESERVED = frozenset({"default", "on_engine_failure", "summarizer"})
"""No engine's id: these stand beside the blocks of engines."""


class InvalidEngine(ValueError):
    """What was registered, or what a factory made, is no engine. The text can be shown to anybody;
    what was raised on the way is the cause."""


class Surroundings(msgspec.Struct, frozen=True):
    """What options are judged beside."""

    available: int
    """What the default window leaves for messages, in tokens."""
    windows: Mapping[str, int]
    """The windows of summarizers' endpoints in tokens, by the path of the setting."""


class Finding(msgspec.Struct, frozen=True):
    """One check of options that no single value can tell."""

    setting: str
    """The path of a setting, from the root."""
    found: str
    advice: str = ""
    """What to do; empty where it is well."""


class Registration(msgspec.Struct, frozen=True):
    """An engine that can be chosen: what an entry point of the group `contextengine.engines`
    names."""

    id: str
    options: type[BaseModel]
    """How its options are declared; every option has a default. They are read from the block of its
    id below `engine`, and from what an operator assigns."""
    make: Callable[[Any], Engine]
    """Makes it from its options."""
    owner: str = ""
    """`core`, or `plugin:` and the distribution; the server fills it in."""
    findings: Callable[[Any, Surroundings], Iterable[Finding]] | None = None
    """Checks of its options for `doctor`, where it has any."""


def check(registration: Registration) -> None:
    """Raises InvalidEngine where the registration itself is wrong."""
    engine_id, declared = registration.id, registration.options
    if not ENGINE_ID.fullmatch(engine_id):
        raise InvalidEngine(f"engine id {engine_id!r} must be letters, digits and @ . _ / : - only")
    if engine_id in RESERVED:
        raise InvalidEngine(f"engine id {engine_id!r} is reserved")
    if not registration.owner.strip():
        raise InvalidEngine(f"engine {engine_id!r} has no owner")
    if not (isinstance(declared, type) and issubclass(declared, BaseModel)):
        raise InvalidEngine(f"the options of engine {engine_id!r} are not a pydantic model")
    required = [name for name, field in declared.model_fields.items() if field.is_required()]
    if required:
        raise InvalidEngine(
            f"options of engine {engine_id!r} have no default: {', '.join(required)}"
        )
    try:
        declared().model_dump_json()
    except Exception as error:
        raise InvalidEngine(
            f"the defaults of the options of engine {engine_id!r} cannot be used:"
            f" {type(error).__name__}"
        ) from error
    if "summarizer" in declared.model_fields:
        raise InvalidEngine(
            f"engine {engine_id!r} has an option `summarizer`, which is every engine's"
        )
