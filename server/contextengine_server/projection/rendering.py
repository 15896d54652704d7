"""What the four provider formats share: what is asked of a renderer, what it answers, and what they decide in the same way."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .model import File, Image, Item, Loss, Part, Role, Text, text_of
from .pairing import Said, pair
from .text import well_formed

Json = dict[str, Any]

OPENER = "[Earlier messages of this conversation are not shown.]"
"""A user's text before a list that would begin with the model, which Anthropic and Gemini refuse. Cutting forward to the next user's
text instead would lose what an agent just did."""

FAMILIES: Mapping[str, frozenset[str]] = {
    "openai": frozenset({"openai", "azure", "azure-openai", "openai-codex"}),
    "anthropic": frozenset({"anthropic"}),
    "google": frozenset({"google", "gemini", "google-genai", "vertex", "google-vertex", "vertexai"}),
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
    """A context in a provider's form."""

    messages: list[Json]
    system: Any = None
    """The system part, where the form keeps it apart."""
    instructions: str = ""
    losses: list[Loss] = field(default_factory=list)


def said_of(task: ProviderTask, losses: list[Loss]) -> tuple[list[Said], list[Said]]:
    """The leading system and developer messages, and what follows them, this turn's prompt at the end."""
    items = list(task.items)
    if task.prompt:
        items.append(Item(Role.USER, tuple(task.prompt)))
    said = pair([item for item in items if not item.excluded], losses)
    count = 0
    while count < len(said) and said[count].item.role in (Role.SYSTEM, Role.DEVELOPER):
        count += 1
    return said[:count], [_voiced(one, losses) for one in said[count:]]


def made_here(task: ProviderTask, item: Item, family: str) -> bool:
    """True where the model that will be called is known to have produced the item: only then its reasoning is sent back."""
    provider = (task.provider or family).lower()
    producer = item.provider.lower()
    names = FAMILIES[family]
    same = producer == provider or (producer in names and provider in names)
    made = item.role is Role.ASSISTANT and bool(item.model)
    return made and item.model == task.model and same and provider in names


def media_url(part: Image | File) -> str:
    """Where the medium is, or the medium itself as a data URL."""
    if part.data is None:
        return part.uri
    return f"data:{part.mime};base64,{encoded(part.data)}"


def encoded(data: bytes) -> str:
    """Base64."""
    return base64.b64encode(data).decode()


def more_of(part: Part, item: Item, dialect: str) -> Json:
    """What the provider added to the part, where it is this one."""
    if not part.more or item.dialect != dialect:
        return {}
    added = json.loads(part.more)
    return added if isinstance(added, dict) else {}


def object_of(text: str) -> tuple[Json, bool]:
    """A call's arguments as an object, and whether they were one. What is none is carried whole under one key."""
    if not text.strip():
        return {}, True
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {"arguments": text}, False
    if not isinstance(value, dict):
        return {"arguments": text}, False
    clean = well_formed(value)
    return clean, clean == value


def _voiced(said: Said, losses: list[Loss]) -> Said:
    """A harness's own roles, and instructions in the middle, in the user's voice: no format has a place for them there."""
    item = said.item
    if item.role is Role.CUSTOM:
        losses.append(Loss(said.index, f"the role {item.custom_role!r}: shown as the user's text", "roles"))
        label = Text(f"[{item.custom_role}]\n{text_of(said.parts)}")
        rest = tuple(part for part in said.parts if not isinstance(part, Text))
        return replace(said, item=replace(item, role=Role.USER), parts=(label, *rest))
    return said
