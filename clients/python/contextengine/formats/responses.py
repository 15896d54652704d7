"""OpenAI Responses: the `input` of a request, from."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any

from ..messages import compact_json
from ..types import (
    ROLE_ASSISTANT,
    ROLE_DEVELOPER,
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
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from .node import Node, Source, load, storable

FORMAT = "openai.responses"
"""The name of the format in `Message.native`."""

_ROLES = {
    "user": ROLE_USER,
    "assistant": ROLE_ASSISTANT,
    "system": ROLE_SYSTEM,
    "developer": ROLE_DEVELOPER,
}


def from_responses(items: Iterable[Source]) -> list[Message]:
    """Messages. Items that one reply of the model is made of (reasoning, then its text, then its
    calls) become one; its `native` is the list of them. They have no ids: see `with_ids`. Raises
    FormatError."""
    messages: list[Message] = []
    natives: list[list[bytes]] = []
    for source in items:
        node, raw = load(source)
        message = _message(node)
        if messages and _goes_on(messages[-1], message):
            messages[-1].parts.extend(message.parts)
            natives[-1].append(raw)
        else:
            messages.append(message)
            natives.append([raw])
    for message, raws in zip(messages, natives, strict=True):
        joined = raws[0] if len(raws) == 1 else b"[" + b",".join(raws) + b"]"
        message.native.CopyFrom(Native(format=FORMAT, json=joined))
    return messages


def _goes_on(before: Message, message: Message) -> bool:
    """Whether the item belongs to the reply that has begun: calls go on with anything but an
    answer, text with reasoning only."""
    if before.role != ROLE_ASSISTANT or message.role != ROLE_ASSISTANT or not message.parts:
        return False
    thoughts = all(part.HasField("reasoning") for part in before.parts)
    return bool(before.parts) and (message.parts[0].HasField("tool_call") or thoughts)


def _message(node: Node) -> Message:
    kind = node.text("type") or "message"
    match kind:
        case "message":
            role = _ROLES.get(node.required("role"))
            if role is None:
                raise node.error("role", f"one of {', '.join(_ROLES)} is needed")
            return Message(role=role, parts=_content(node, "content"))
        case "reasoning":
            return Message(role=ROLE_ASSISTANT, parts=[_reasoning(node)])
        case "function_call" | "custom_tool_call":
            return Message(role=ROLE_ASSISTANT, parts=[_call(node, kind)])
        case "function_call_output" | "custom_tool_call_output":
            result = ToolResultPart(
                call_id=node.required("call_id"), parts=_content(node, "output")
            )
            rest = node.rest("type", "call_id", "output", "id", "status")
            return Message(
                role=ROLE_TOOL, parts=[Part(tool_result=result, provider_metadata_json=rest)]
            )
    opaque = OpaquePart(format=FORMAT, type=kind, json=compact_json(node.value))
    return Message(role=_whose(node, kind), parts=[Part(opaque=opaque)])


def _whose(node: Node, kind: str) -> Role:
    """Who an item of a kind that is not known here is from: who it says, of what a host sets the
    developer, else the model."""
    if role := _ROLES.get(node.text("role")):
        return role
    return ROLE_DEVELOPER if kind == "configuration_update" else ROLE_ASSISTANT


def _reasoning(node: Node) -> Part:
    summary = node.nodes("summary")
    more = node.rest("type", "id", "encrypted_content", *(["summary"] if len(summary) < 2 else []))
    part = ReasoningPart(
        text="\n\n".join(text.text("text") for text in summary),
        redacted_data=node.text("encrypted_content").encode(),
        item_id=node.text("id"),
    )
    return Part(reasoning=part, provider_metadata_json=more)


def _call(node: Node, kind: str) -> Part:
    custom = kind == "custom_tool_call"
    given = "input" if custom else "arguments"
    call = ToolCallPart(
        call_id=node.required("call_id"),
        name=node.required("name"),
        arguments_json=node.text(given).encode(),
        item_id=node.text("id"),
        namespace=node.text("namespace"),
    )
    known = ("call_id", "name", given, "id", "namespace", *(() if custom else ("type",)))
    return Part(tool_call=call, provider_metadata_json=node.rest(*known))


def _content(node: Node, key: str) -> list[Part]:
    content = node.value.get(key)
    if isinstance(content, str):
        return [Part(text=TextPart(text=storable(content)))]
    if not isinstance(content, list):
        raise node.error(key, "a string or a list of parts is needed")
    return [_part(part) for part in node.nodes(key)]


def _part(node: Node) -> Part:
    kind = node.required("type")
    match kind:
        case "input_text" | "output_text":
            text = TextPart(text=node.text("text"))
            return Part(text=text, provider_metadata_json=node.rest("type", "text"))
        case "input_image":
            where = _where(node, "image_url", ImagePart)
            where.detail = node.text("detail")
            rest = node.rest("type", "image_url", "file_id", "detail")
            return Part(image=where, provider_metadata_json=rest)
        case "input_file":
            file = _where(node, "file_data" if node.text("file_data") else "file_url", FilePart)
            file.name = node.text("filename")
            rest = node.rest("type", "file_data", "file_url", "file_id", "filename")
            return Part(file=file, provider_metadata_json=rest)
    return Part(opaque=OpaquePart(format=FORMAT, type=kind, json=compact_json(node.value)))


def _where(node: Node, key: str, kind: type[Any]) -> Any:
    """A medium by its data URL, its address, or its id with the provider."""
    url = node.text(key)
    head, comma, data = url.partition(",")
    if not (comma and head.startswith("data:") and head.endswith(";base64")):
        return kind(uri=url or node.text("file_id"))
    try:
        return kind(data=base64.b64decode(data, validate=True), mime_type=head[5:-7])
    except binascii.Error:
        raise node.error(key, "base64 is needed") from None
