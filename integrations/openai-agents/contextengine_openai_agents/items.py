"""Items of the SDK as the service keeps them, and back. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from contextengine import Message, with_ids
from contextengine.formats import from_responses, to_responses
from contextengine.types import ROLE_ASSISTANT, ROLE_TOOL, Item, ToolDefinition


def kept(items: Iterable[Any]) -> list[Message]:
    """Items as messages, each with a new id. Items that one reply is made of are one message.
    Raises FormatError."""
    return with_ids(read(items))


def read(items: Iterable[Any]) -> list[Message]:
    """The same without ids. Raises FormatError."""
    return from_responses([_plain(item) for item in items])


def shown(items: Iterable[Item]) -> list[Any]:
    """What the service answered, as items. What is shown verbatim is what was kept."""
    return to_responses(item.message for item in items)


def is_answer(messages: Sequence[Message]) -> bool:
    """Whether these end a turn: the model says something and calls nothing."""
    if not messages or messages[-1].role in (ROLE_TOOL,):
        return False
    last = messages[-1]
    return last.role == ROLE_ASSISTANT and not any(one.HasField("tool_call") for one in last.parts)


def definitions(tools: Iterable[Any]) -> list[ToolDefinition]:
    """What the schemas of the agent's functions take of the window."""
    return [
        ToolDefinition(
            name=tool.name,
            description=tool.description or "",
            input_schema_json=json.dumps(tool.params_json_schema, default=str).encode(),
        )
        for tool in tools
        if hasattr(tool, "params_json_schema")
    ]


def _plain(item: Any) -> dict[str, Any]:
    """An item as the SDK writes it into a request."""
    if hasattr(item, "model_dump"):
        item = item.model_dump(mode="json", exclude_unset=True)
    found: dict[str, Any] = json.loads(json.dumps(item, default=str))
    return found
