"""The AI SDK of Vercel: `ModelMessage`, from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ..messages import compact_json
from ..types import (
    ROLE_ASSISTANT,
    ROLE_SYSTEM,
    ROLE_TOOL,
    ROLE_USER,
    ImagePart,
    Message,
    Native,
    OpaquePart,
    Part,
    ReasoningPart,
    ToolCallPart,
    ToolResultPart,
)
from .common import arguments_of, data_url, decoded, medium, text_part
from .node import Node, Source, load

FORMAT = "ai-sdk"
"""The name of the format in `Message.native`."""

ROLES = {
    "user": ROLE_USER,
    "assistant": ROLE_ASSISTANT,
    "tool": ROLE_TOOL,
    "system": ROLE_SYSTEM,
}


def from_ai_sdk(messages: Iterable[Source]) -> list[Message]:
    """Messages, each keeping its original in `native`, byte for byte where it is given as text.

    Bytes of pictures and files are base64 here, as JSON has them. They have no ids: see `with_ids`.
    Raises FormatError.
    """
    return [_message(*load(source)) for source in messages]


def _message(node: Node, native: bytes) -> Message:
    role = ROLES.get(node.required("role"))
    if role is None:
        raise node.error("role", f"one of {', '.join(ROLES)} is needed")
    return Message(role=role, parts=_content(node), native=Native(format=FORMAT, json=native))


def _content(node: Node) -> list[Part]:
    content = node.value.get("content")
    if isinstance(content, str):
        return [text_part(content)]
    if not isinstance(content, list):
        raise node.error("content", "a string or a list of parts is needed")
    return [_part(part) for part in node.nodes("content")]


def _part(node: Node) -> Part:
    part = _kind(node)
    options = node.node("providerOptions")
    google = options and (options.node("google") or options.node("vertex"))
    if google and google.text("thoughtSignature"):
        part.thought_signature = google.text("thoughtSignature").encode()
    return part


def _kind(node: Node) -> Part:
    match node.required("type"):
        case "text":
            return text_part(node.text("text"), node.rest("type", "text"))
        case "reasoning":
            return Part(reasoning=_thought(node), provider_metadata_json=node.rest("type", "text"))
        case "tool-call":
            call = ToolCallPart(call_id=node.required("toolCallId"), name=node.required("toolName"))
            call.arguments_json = _input(node.value.get("input"))
            rest = node.rest("type", "toolCallId", "toolName", "input")
            return Part(tool_call=call, provider_metadata_json=rest)
        case "tool-result":
            return _result(node)
        case "image":
            return _medium(node, "image", "type", "image", "mediaType")
        case "file":
            return _medium(node, "data", "type", "data", "mediaType", "filename")
    return _opaque(node)


def _input(value: object) -> bytes:
    """A call's arguments. A string is what the model wrote where it is no JSON."""
    if isinstance(value, str):
        try:
            json.loads(value)
        except ValueError:
            return arguments_of(value)
        return compact_json(value)
    return arguments_of(value)


def _opaque(node: Node) -> Part:
    kind = node.required("type")
    return Part(opaque=OpaquePart(format=FORMAT, type=kind, json=compact_json(node.value)))


def _thought(node: Node) -> ReasoningPart:
    """Reasoning; what binds it stands among the options of its provider."""
    thought = ReasoningPart(text=node.text("text"))
    options = node.node("providerOptions")
    anthropic = options and options.node("anthropic")
    openai = options and options.node("openai")
    if anthropic:
        thought.signature = anthropic.text("signature").encode()
        thought.redacted_data = anthropic.text("redactedData").encode()
    elif openai:
        thought.item_id = openai.text("itemId")
        thought.redacted_data = openai.text("reasoningEncryptedContent").encode()
    return thought


def _medium(node: Node, key: str, *known: str) -> Part:
    """A picture or file: base64, a data URL, or an address."""
    given = node.required(key)
    mime_type, data = data_url(given)
    uri = ""
    if data is None:
        if "://" in given:
            uri = given
        else:
            data = decoded(node, key)
    mime_type = node.text("mediaType") or mime_type
    if key == "image":
        where: dict[str, Any] = {"uri": uri} if data is None else {"data": data}
        part = Part(image=ImagePart(mime_type=mime_type, **where))
    else:
        part = medium(data, uri, mime_type, node.text("filename"))
    # Said of a picture alone: files that are pictures are told from them by it.
    told = {"type": "file"} if key == "data" and part.HasField("image") else {}
    rest = json.loads(node.rest(*known) or b"{}")
    more = {**rest, **told}
    part.provider_metadata_json = compact_json(more) if more else b""
    return part


def _result(node: Node) -> Part:
    output = node.node("output")
    if output is None:
        raise node.error("output", "an object is needed")
    kind = output.required("type")
    result = ToolResultPart(call_id=node.required("toolCallId"), name=node.required("toolName"))
    result.is_error = kind in ("error-text", "error-json", "execution-denied")
    told: dict[str, Any] = {}
    match kind:
        case "text" | "error-text":
            result.parts.append(text_part(output.text("value")))
        case "json" | "error-json":
            result.parts.append(text_part(compact_json(output.value.get("value")).decode()))
            told = {"type": kind}
        case "execution-denied":
            result.parts.append(text_part(output.text("reason")))
            told = {"type": kind}
        case "content":
            result.parts.extend(_piece(one) for one in output.nodes("value"))
            told = {"type": kind}
        case _:
            raise output.error("type", "an output of the AI SDK is needed")
    options = output.value.get("providerOptions")
    if isinstance(options, Mapping):
        told["providerOptions"] = dict(options)
    rest = json.loads(node.rest("type", "toolCallId", "toolName", "output") or b"{}")
    more = {**rest, "output": told} if told else rest
    return Part(tool_result=result, provider_metadata_json=compact_json(more) if more else b"")


def _piece(node: Node) -> Part:
    """A part of a result."""
    kind = node.required("type")
    match kind:
        case "text":
            return text_part(node.text("text"), node.rest("type", "text"))
        case "image-data" | "file-data" | "media":
            data, mime_type = decoded(node, "data"), node.text("mediaType")
            part = medium(data, "", "image/" if kind == "image-data" else mime_type)
        case "image-url" | "file-url":
            mime_type = node.text("mediaType")
            part = medium(
                None, node.required("url"), "image/" if kind == "image-url" else mime_type
            )
        case _:
            return _opaque(node)
    if part.HasField("image"):
        part.image.mime_type = mime_type
    else:
        part.file.name = node.text("filename")
    # Which of several members it was that says the same.
    rest = node.rest("data", "url", "mediaType", "filename")
    part.provider_metadata_json = rest
    return part
