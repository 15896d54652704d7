"""What a form makes of one message, as JSON that knows nothing of its neighbours, and how the forms
put it together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from .model import Item, Opaque, Part
from .text import dumped, well_formed
from .tool_pairs import Lost

JsonObject = dict[str, Any]

FRAGMENT_BYTES = 200
"""What a fragment takes in memory besides its JSON, about."""

_SAID = ("type", "id", "call_id", "text")
"""What a provider's additions never say in place of the service."""


class Fragment(msgspec.Struct, frozen=True):
    """What a form makes of a message, as the entries of its list, and what it cannot say."""

    json: bytes
    lost: tuple[Lost, ...] = ()

    @property
    def size(self) -> int:
        """Bytes in memory, about."""
        return len(self.json) + FRAGMENT_BYTES


def listed(entries: Sequence[bytes]) -> bytes:
    """A JSON list of what is JSON already."""
    return b"".join((b"[", b",".join(entries), b"]"))


def fragment_of(made: Sequence[JsonObject], lost: Sequence[Lost]) -> Fragment:
    """A fragment of these entries."""
    return Fragment(dumped(made)[1:-1], tuple(lost))


def more_of(part: Part, item: Item, dialect: str) -> JsonObject:
    """What the provider added to the part, where it is this one."""
    return (opened(part.more) or {}) if part.more and item.dialect == dialect else {}


def extended(own: JsonObject, part: Part, item: Item, dialect: str) -> JsonObject:
    """What the form says of a part, and what the provider added to it, which may say the same more
    exactly: but not another kind, id or text."""
    more = more_of(part, item, dialect)
    return own | {name: value for name, value in more.items() if name not in _SAID}


def opened(text: str) -> JsonObject | None:
    """The object in a JSON text; None where there is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def object_of(text: str) -> tuple[JsonObject, bool]:
    """A call's arguments as an object, and whether they were one. What is none is carried whole
    under one key."""
    if not text.strip():
        return {}, True
    value = opened(text)
    if value is None:
        return {"arguments": text}, False
    clean: JsonObject = well_formed(value)
    return clean, clean == value


def own_item(part: Opaque) -> JsonObject | None:
    """A vendor's item as it came; None where it is not what the part says."""
    item = opened(part.json)
    return item if item is not None and part.type and item.get("type") == part.type else None
