"""What is asked of the renderer of a provider's form, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from .call_ids import PLAIN, CallIdFormat
from .model import ChatRole, Item, Loss, Part

OPENER = "[Earlier messages of this conversation are not shown.]"
"""A user's text before a list that would begin with the model, which Anthropic and Gemini refuse.
Cutting forward to the next user's text instead would lose what an agent just did."""


class ProviderTask(msgspec.Struct, frozen=True, kw_only=True):
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
    call_ids: CallIdFormat = PLAIN
    """Which ids of tool calls the provider takes."""


class Rendered(msgspec.Struct, frozen=True):
    """A context in a provider's form, as JSON."""

    messages_json: bytes
    """The list."""
    system_json: bytes = b""
    """The system part, where the form keeps it apart and there is one."""
    instructions: str = ""
    losses: list[Loss] = msgspec.field(default_factory=list)


def made_here(item: Item, names: Sequence[str], provider: str, model: str) -> bool:
    """True where the model that will be called is known to have produced the item: only then its
    reasoning is sent back. `names` are those of the provider, for which reasoning and signatures
    are the same; the first is meant where `provider` is empty."""
    called = (provider or names[0]).lower()
    producer = item.provider.lower()
    same = producer == called or (producer in names and called in names)
    made = item.role is ChatRole.ASSISTANT and bool(item.model)
    return made and item.model == model and same and called in names
