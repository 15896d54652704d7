"""Building messages, and reading their text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from .ids import new_id
from .types import (
    ROLE_ASSISTANT,
    ROLE_SYSTEM,
    ROLE_TOOL,
    ROLE_USER,
    Message,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)

Content = str | Part | Iterable[str | Part]
"""Text, a part, or several of them in order."""


def user(
    content: Content,
    *,
    id: str | None = None,
    name: str = "",
    labels: Mapping[str, str] | None = None,
    timestamp: datetime | None = None,
) -> Message:
    """A message of the user. `id`: a new UUIDv7 where it is None."""
    return _message(ROLE_USER, parts_of(content), id, name, labels, timestamp)


def system(
    content: Content, *, id: str | None = None, labels: Mapping[str, str] | None = None
) -> Message:
    """Instructions of the system. Where they lead the session, every assembly shows them
    verbatim."""
    return _message(ROLE_SYSTEM, parts_of(content), id, "", labels, None)


def assistant(
    content: Content = (),
    *,
    tool_calls: Sequence[ToolCallPart] = (),
    reasoning: ReasoningPart | None = None,
    id: str | None = None,
    labels: Mapping[str, str] | None = None,
    timestamp: datetime | None = None,
    usage: Usage | None = None,
    stop_reason: str = "",
    provider: str = "",
    model: str = "",
    api: str = "",
) -> Message:
    """A reply of the model: reasoning, then content, then calls. Other orders: give the parts as
    `content`."""
    parts = [Part(reasoning=reasoning)] if reasoning is not None else []
    parts += parts_of(content)
    parts += [Part(tool_call=call) for call in tool_calls]
    message = _message(ROLE_ASSISTANT, parts, id, "", labels, timestamp)
    message.MergeFrom(
        Message(usage=usage, stop_reason=stop_reason, provider=provider, model=model, api=api)
    )
    return message


def tool_call(
    call_id: str, name: str, arguments: str | bytes | Mapping[str, object] = b"{}"
) -> ToolCallPart:
    """A call for `assistant(tool_calls=[…])`. `arguments`: JSON as the model wrote it, or what to
    write as JSON."""
    return ToolCallPart(call_id=call_id, name=name, arguments_json=json_bytes(arguments))


def tool_result(
    call_id: str,
    content: Content,
    *,
    name: str = "",
    is_error: bool = False,
    id: str | None = None,
    labels: Mapping[str, str] | None = None,
    timestamp: datetime | None = None,
) -> Message:
    """A tool's answer to the call `call_id`. `name`: the tool's; empty: as in the call."""
    result = ToolResultPart(call_id=call_id, name=name, parts=parts_of(content), is_error=is_error)
    return _message(ROLE_TOOL, [Part(tool_result=result)], id, "", labels, timestamp)


def text_of(message: Message) -> str:
    """The text of a message: its text parts and those of its tool results, joined by line ends. No
    reasoning."""
    return "\n".join(_texts(message.parts))


def parts_of(content: Content) -> list[Part]:
    """Content as parts."""
    if isinstance(content, str):
        return [Part(text=TextPart(text=content))]
    if isinstance(content, Part):
        return [content]
    return [part for piece in content for part in parts_of(piece)]


def json_bytes(value: object) -> bytes:
    """`value` as compact JSON; text and bytes are JSON already. Characters beyond ASCII stay as
    they are."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    return compact_json(value)


def compact_json(value: object) -> bytes:
    """`value` as compact JSON in UTF-8. Lone surrogates, which UTF-8 cannot say, are escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def _texts(parts: Iterable[Part]) -> Iterable[str]:
    for part in parts:
        match part.WhichOneof("kind"):
            case "text":
                yield part.text.text
            case "tool_result":
                yield from _texts(part.tool_result.parts)


def _message(
    role: Role,
    parts: Sequence[Part],
    id: str | None,
    name: str,
    labels: Mapping[str, str] | None,
    timestamp: datetime | None,
) -> Message:
    return Message(
        id=new_id() if id is None else id,
        role=role,
        name=name,
        parts=parts,
        labels=labels,
        timestamp=timestamp,
    )
