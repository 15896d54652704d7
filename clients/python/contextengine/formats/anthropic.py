"""Anthropic Messages: the `system` and `messages` of a request, from."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any

from ..messages import compact_json
from ..types import (
    ROLE_ASSISTANT,
    ROLE_SYSTEM,
    ROLE_TOOL,
    ROLE_USER,
    FilePart,
    ImagePart,
    Message,
    Native,
    OpaquePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from .node import Node, Source, load, parse, storable

FORMAT = "anthropic.messages"
"""The name of the format in `Message.native`."""


def from_anthropic(messages: Iterable[Source], system: object = None) -> list[Message]:
    """Messages, each keeping its original in `native`, byte for byte where it is given as text.

    `system`: text or a list of blocks, which becomes a leading system message; its JSON as bytes is
    kept as it is. A user message of tool results alone is a tool message. They have no ids: see
    `with_ids`. Raises FormatError.
    """
    head = [] if system is None else [_system(system)]
    return head + [message_of(*load(source)) for source in messages]


def _system(system: object) -> Message:
    raw = system if isinstance(system, bytes) else compact_json(system)
    node = Node({"system": parse(raw)})
    return Message(
        role=ROLE_SYSTEM, parts=_blocks(node, "system"), native=Native(format=FORMAT, json=raw)
    )


def message_of(node: Node, native: bytes) -> Message:
    """The message that `node` is; `native`: the text that it was read from."""
    role = node.required("role")
    if role not in ("user", "assistant", "system"):
        raise node.error("role", "user, assistant or system is needed")
    parts = _blocks(node, "content")
    message = Message(parts=parts, native=Native(format=FORMAT, json=native))
    if role == "assistant":
        message.role = ROLE_ASSISTANT
        message.api = "anthropic-messages"
        # A reply kept as the API gave it says more than a request may.
        message.id, message.model = node.text("id"), node.text("model")
        message.stop_reason = node.text("stop_reason")
        if (usage := node.node("usage")) is not None:
            message.usage.CopyFrom(_usage(usage))
    elif role == "system":
        # Instructions that hold from there on stand among the messages.
        message.role = ROLE_SYSTEM
    elif parts and all(part.HasField("tool_result") for part in parts):
        message.role = ROLE_TOOL
    else:
        message.role = ROLE_USER
    return message


def _blocks(node: Node, key: str) -> list[Part]:
    content = node.value.get(key)
    if isinstance(content, str):
        return [Part(text=TextPart(text=storable(content)))]
    if not isinstance(content, list):
        raise node.error(key, "a string or a list of blocks is needed")
    return [_block(block) for block in node.nodes(key)]


def _block(node: Node) -> Part:
    match node.required("type"):
        case "text":
            return Part(
                text=TextPart(text=node.text("text")),
                provider_metadata_json=node.rest("type", "text"),
            )
        case "thinking":
            signature = node.text("signature").encode()
            reasoning = ReasoningPart(text=node.text("thinking"), signature=signature)
            return Part(
                reasoning=reasoning,
                provider_metadata_json=node.rest("type", "thinking", "signature"),
            )
        case "redacted_thinking":
            reasoning = ReasoningPart(redacted_data=node.required("data").encode())
            return Part(reasoning=reasoning, provider_metadata_json=node.rest("type", "data"))
        case "tool_use":
            call = ToolCallPart(call_id=node.required("id"), name=node.required("name"))
            call.arguments_json = compact_json(node.value.get("input", {}))
            return Part(
                tool_call=call, provider_metadata_json=node.rest("type", "id", "name", "input")
            )
        case "tool_result":
            result = ToolResultPart(
                call_id=node.required("tool_use_id"),
                parts=_blocks(node, "content") if node.value.get("content") is not None else [],
                is_error=node.value.get("is_error") is True,
            )
            rest = node.rest("type", "tool_use_id", "content", "is_error")
            return Part(tool_result=result, provider_metadata_json=rest)
        case "image" if _known_source(node):
            image = ImagePart(**_source(node))
            return Part(image=image, provider_metadata_json=node.rest("type", "source"))
        case "document" if _known_source(node):
            file = FilePart(name=node.text("title"), **_source(node))
            return Part(file=file, provider_metadata_json=node.rest("type", "source", "title"))
        case kind:
            return Part(opaque=OpaquePart(format=FORMAT, type=kind, json=compact_json(node.value)))


def _known_source(node: Node) -> bool:
    source = node.node("source")
    return source is not None and source.text("type") in ("base64", "url", "file", "text")


def _source(node: Node) -> dict[str, Any]:
    """Where a picture or document is: the arguments of its part."""
    source = node.node("source")
    assert source is not None
    mime_type = source.text("media_type")
    match source.text("type"):
        case "base64":
            try:
                data = base64.b64decode(source.text("data"), validate=True)
            except binascii.Error:
                raise source.error("data", "base64 is needed") from None
            return {"data": data, "mime_type": mime_type}
        case "text":
            return {"data": source.text("data").encode(), "mime_type": mime_type}
        case "url":
            return {"uri": source.required("url"), "mime_type": mime_type}
    return {"uri": source.required("file_id"), "mime_type": mime_type}


def _usage(node: Node) -> Usage:
    written = node.node("cache_creation")
    return Usage(
        input_tokens=node.number("input_tokens"),
        output_tokens=node.number("output_tokens"),
        cache_read_tokens=node.number("cache_read_input_tokens"),
        cache_write_tokens=node.number("cache_creation_input_tokens"),
        cache_write_1h_tokens=None
        if written is None
        else written.number("ephemeral_1h_input_tokens"),
    )
