"""Naming a host's messages, where it gives them no ids, by what they say. Pure.

A message's id is worked out from what hosts leave alone (role, texts, names and arguments of calls,
what results say) and from the id of the one before it. So equal ids mean equal beginnings, and the
first difference is where the user went back. Call ids, reasoning, signatures, cache marks and how
the JSON is written are not looked at: hosts rewrite them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import blake2b

from .types import ROLE_TOOL, ROLE_USER, FilePart, ImagePart, Message, Part

_SIZE = 15
"""Bytes of a digest: 120 bits, which nobody meets twice by chance."""


def name_by_content(messages: Iterable[Message], before: str = "") -> list[str]:
    """Gives messages their ids, in place; the ids. `before`: the id of the message before them."""
    ids = []
    for message in messages:
        message.id = before = digest(before, *_said(message))
        ids.append(before)
    return ids


def said(message: Message) -> str:
    """Names what a message says, wherever it stands."""
    return digest(*_said(message))


def digest(*texts: str) -> str:
    """Names these texts, in this order, in 30 characters."""
    taken = blake2b(digest_size=_SIZE)
    for text in texts:
        raw = text.encode(errors="replace")
        taken.update(b"%d:" % len(raw))
        taken.update(raw)
    return taken.hexdigest()


def _said(message: Message) -> list[str]:
    # A result is a tool's or a user's, as the format has it.
    role = ROLE_USER if message.role == ROLE_TOOL else message.role
    said = [str(role)]
    for part in message.parts:
        said += _of(part)
    return said


def _of(part: Part) -> list[str]:
    match part.WhichOneof("kind"):
        case "text":
            text = part.text.text.strip()
            return ["text", text] if text else []
        case "tool_call":
            return ["call", part.tool_call.name, plain_arguments(part.tool_call.arguments_json)]
        case "tool_result":
            return ["result", *(text for inner in part.tool_result.parts for text in _of(inner))]
        case "image":
            return ["image", _where(part.image)]
        case "file":
            return ["file", _where(part.file)]
        case "opaque":
            return ["opaque", part.opaque.type]
    return []


def plain_arguments(raw: bytes) -> str:
    """Arguments without the way they are written: a client parses them and writes them again."""
    try:
        return json.dumps(json.loads(raw or b"{}"), sort_keys=True)
    except ValueError:
        return raw.decode(errors="replace").strip()


def _where(source: ImagePart | FilePart) -> str:
    if source.WhichOneof("source") == "uri":
        return source.uri
    return blake2b(source.data, digest_size=_SIZE).hexdigest()
