"""Messages of LangChain as the service keeps them, and back.

They travel in the form of OpenAI's chat; what that form cannot say (a tool's status and artifact,
signed reasoning) is not lost: what the service shows verbatim is the agent's own message again, by
its id.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import (
    AnyMessage,
    SystemMessage,
    convert_to_messages,
    convert_to_openai_messages,
)

from contextengine import Message
from contextengine.formats import from_openai, to_openai
from contextengine.types import FORM_UNSPECIFIED, Item


def kept(messages: Sequence[AnyMessage]) -> list[Message]:
    """As the service keeps them. Each has an id, which LangGraph gives to what is in a state."""
    made: list[Message] = []
    for message in messages:
        row: Any = convert_to_openai_messages(message)
        (one,) = from_openai([_plain(row)])
        one.id = str(message.id or "")
        made.append(one)
    return made


def shown(items: Iterable[Item], known: Sequence[AnyMessage]) -> list[AnyMessage]:
    """What the service answered, in the agent's own messages where they are shown verbatim."""
    own = {str(message.id): message for message in known}
    made: list[AnyMessage] = []
    for item in items:
        found = own.get(item.id) if item.form == FORM_UNSPECIFIED else None
        if found is not None:
            made.append(found)
            continue
        written: Any = convert_to_messages(to_openai([item.message]))
        for one in written:
            one.id = item.id or None
        made.extend(written)
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
