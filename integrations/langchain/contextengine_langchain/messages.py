"""Messages of LangChain as the service keeps them, and back. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import (
    AnyMessage,
    SystemMessage,
    messages_from_dict,
    messages_to_dict,
)

from contextengine import Message, name_by_content
from contextengine.conversation import shown_verbatim
from contextengine.formats import from_langchain, to_langchain
from contextengine.types import Item


def kept(messages: Sequence[AnyMessage]) -> list[Message]:
    """As the service keeps them. Each has an id, which LangGraph gives to what is in a state; where
    one has none, all are named by what they say. Raises FormatError."""
    written: Any = messages_to_dict(list(messages))
    made = from_langchain(map(_plain, written))
    if not all(one.id for one in made):
        name_by_content(made)
    return made


def shown(
    items: Iterable[Item], own: Sequence[AnyMessage], kept: Sequence[Message]
) -> list[AnyMessage]:
    """What the service answered, in the agent's own messages where they are shown verbatim."""
    known = {row.id: message for row, message in zip(kept, own, strict=True)}
    made: list[Any] = []
    for item in items:
        if shown_verbatim(item, known):
            made.append(known[item.id])
            continue
        written: Any = messages_from_dict(to_langchain([item.message]))
        for one in written:
            one.id = item.id or None
        made += written
    return made


def with_addition(system: SystemMessage | None, addition: str) -> SystemMessage | None:
    """The system message with what the service says beside the messages, behind it, so that the
    beginning stays what the provider has cached."""
    if not addition:
        return system
    if system is None:
        return SystemMessage(content=addition)
    content: Any = system.content
    if isinstance(content, str):
        return SystemMessage(content=f"{content}\n\n{addition}")
    return SystemMessage(content=[*content, {"type": "text", "text": addition}])


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Without what is no JSON."""
    found: dict[str, Any] = json.loads(json.dumps(row, default=str))
    return found
