"""What several formats do alike: media in base64, arguments as values, what stands beside a
part."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from typing import Any

from ..messages import compact_json
from ..types import (
    ROLE_ASSISTANT,
    ROLE_DEVELOPER,
    ROLE_SYSTEM,
    FilePart,
    ImagePart,
    Message,
    Part,
    TextPart,
)
from .node import Node, storable

Json = dict[str, Any]
Rows = tuple[list[Json], list[Json]]
"""What is written of a message: its results, and what is said beside them. What came in the format
itself is not taken apart, and is among the first."""

_PLAIN = str.maketrans("-_", "+/")


def decoded(node: Node, key: str) -> bytes:
    """The bytes of a member in base64, of either alphabet."""
    try:
        return base64.b64decode(node.text(key).translate(_PLAIN), validate=True)
    except (binascii.Error, ValueError):
        raise node.error(key, "base64 is needed") from None


def data_url(url: str) -> tuple[str, bytes | None]:
    """Media type and bytes of a base64 data URL. No bytes: it is another URL."""
    head, comma, body = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return "", None
    try:
        return head[len("data:") : -len(";base64")], base64.b64decode(body, validate=True)
    except binascii.Error:
        return "", None


def medium(data: bytes | None, uri: str, mime_type: str, name: str = "") -> Part:
    """A picture, where the media type says so, else a file."""
    where: dict[str, Any] = {"uri": uri} if data is None else {"data": data}
    if mime_type.startswith("image/"):
        return Part(image=ImagePart(mime_type=mime_type, **where))
    return Part(file=FilePart(mime_type=mime_type, name=name, **where))


def encoded(source: ImagePart | FilePart) -> str:
    """The bytes of a medium in base64."""
    return base64.b64encode(source.data).decode()


def text_part(text: str, more: bytes = b"") -> Part:
    """A part of text."""
    return Part(text=TextPart(text=storable(text)), provider_metadata_json=more)


def arguments_of(value: object) -> bytes:
    """The arguments of a call: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return storable(value).encode()
    return compact_json({} if value is None else value)


def as_value(arguments: bytes) -> Any:
    """The arguments of a call as a value; what is no JSON as its text."""
    text = arguments.decode(errors="replace")
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def as_object(arguments: bytes) -> Json:
    """The same where an object is insisted on: what is none stands under `arguments`."""
    value = as_value(arguments)
    return value if isinstance(value, dict) else {"arguments": value}


def beside(node: Node, *known: str) -> bytes:
    """What else a member of a list says, as JSON; null says nothing. Empty: no more."""
    return Node({k: v for k, v in node.value.items() if v is not None}).rest(*known)


def more_of(part: Part, *known: str) -> Json:
    """Of what stands beside a part, the members that the format knows: what others put there has no
    place in it."""
    found = json.loads(part.provider_metadata_json) if part.provider_metadata_json else {}
    if not isinstance(found, Mapping):
        return {}
    return {key: found[key] for key in known if key in found}


def calls_of(message: Message) -> dict[str, str]:
    """The names of the tools that a message calls, by the ids of its calls."""
    return {
        part.tool_call.call_id: part.tool_call.name
        for part in message.parts
        if part.HasField("tool_call")
    }


def joined(parts: Iterable[Part]) -> str:
    """The texts among the parts, joined by line ends."""
    return "\n".join(part.text.text for part in parts if part.HasField("text"))


def has_results(message: Message) -> bool:
    """Whether a message answers calls. A model's own may hold what its provider's tools found."""
    others = (ROLE_ASSISTANT, ROLE_SYSTEM, ROLE_DEVELOPER)
    return message.role not in others and any(p.HasField("tool_result") for p in message.parts)


def in_steps(written: Iterable[tuple[Message, Rows]]) -> list[Json]:
    """What is written of messages, in order, but that what is said beside some of a step's results
    stands behind them all: providers want them directly behind the calls."""
    rows: list[Json] = []
    beside: list[Json] = []
    for message, (results, said) in written:
        if not has_results(message):
            rows += beside
            beside = []
        rows += results
        (beside if has_results(message) else rows).extend(said)
    return rows + beside
