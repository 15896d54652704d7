"""What the four provider formats share: what is asked of a renderer, what it answers, and what they
decide in the same way."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .model import ChatRole, Item, Loss, Opaque, Part
from .text import dumped, well_formed
from .tool_pairs import Lost

JsonObject = dict[str, Any]

FRAGMENT_BYTES = 200
"""What a fragment takes in memory besides its JSON, about."""

_SAID = ("type", "id", "call_id", "text")
"""What a provider's additions never say in place of the service."""

OPENER = "[Earlier messages of this conversation are not shown.]"
"""A user's text before a list that would begin with the model, which Anthropic and Gemini refuse.
Cutting forward to the next user's text instead would lose what an agent just did."""

FAMILIES: Mapping[str, frozenset[str]] = {
    "openai": frozenset({"openai", "azure", "azure-openai", "openai-codex"}),
    "anthropic": frozenset({"anthropic"}),
    "google": frozenset(
        {"google", "gemini", "google-genai", "vertex", "google-vertex", "vertexai"}
    ),
}
"""Names of providers that are one and the same to reasoning and signatures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderTask:
    """A context for a provider."""

    items: Sequence[Item]
    prompt: Sequence[Part] = ()
    """This turn's prompt where it is not among the items."""
    instructions: str = ""
    """The system prompt: the harness's own and the engine's addition."""
    provider: str = ""
    model: str = ""
    """Who will be called. Reasoning is kept only where both are known to have made it."""
    breakpoints: int | None = None
    """The most cache breakpoints. None: as many as the provider takes."""


@dataclass(slots=True)
class Rendered:
    """A context in a provider's form, as JSON."""

    messages_json: bytes
    """The list."""
    system_json: bytes = b""
    """The system part, where the form keeps it apart and there is one."""
    instructions: str = ""
    losses: list[Loss] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Fragment:
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


def made_here(item: Item, family: str, provider: str, model: str) -> bool:
    """True where the model that will be called is known to have produced the item: only then its
    reasoning is sent back."""
    called = (provider or family).lower()
    producer = item.provider.lower()
    names = FAMILIES[family]
    same = producer == called or (producer in names and called in names)
    made = item.role is ChatRole.ASSISTANT and bool(item.model)
    return made and item.model == model and same and called in names


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
