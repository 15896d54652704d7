"""Pydantic AI: messages as `ModelMessagesTypeAdapter` writes them, from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

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
    Role,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from .common import Json, arguments_of, beside, decoded, medium, text_part
from .node import Node, Source, load

FORMAT = "pydantic-ai"
"""The name of the format in `Message.native`."""

OF = "contextengine:of"
"""The member of a request's piece that says which piece it is, and of how many."""
REDACTED = "redacted_thinking"
"""The id of reasoning that only its provider can read, where it has none."""


def from_pydantic_ai(messages: Iterable[Source]) -> list[Message]:
    """Messages, each keeping its original in `native`, byte for byte where it is given as text.

    A request holds what several roles say (a system's prompt, tools' results, a user's words): each
    run of one role becomes a message, whose original is the request with its own parts. They have
    no ids: see `with_ids`. Raises FormatError.
    """
    return [message for source in messages for message in _messages(*load(source))]


def _messages(node: Node, native: bytes) -> list[Message]:
    match node.required("kind"):
        case "request":
            return _request(node, native)
        case "response":
            return [_response(node, native)]
    raise node.error("kind", "request or response is needed")


def _request(node: Node, native: bytes) -> list[Message]:
    runs: list[tuple[Message, list[Any]]] = []
    for part in node.nodes("parts"):
        role, made = _said(part)
        if role is None:
            role = runs[-1][0].role if runs else ROLE_USER
        if not runs or runs[-1][0].role != role:
            runs.append((_timed(Message(role=role), part), []))
        runs[-1][0].parts.extend(made)
        runs[-1][1].append(part.value)
    if not runs:
        return [Message(role=ROLE_USER, native=Native(format=FORMAT, json=native))]
    for at, (message, parts) in enumerate(runs):
        json_of = native
        if len(runs) > 1:
            json_of = compact_json({**node.value, "parts": parts, OF: [at, len(runs)]})
        message.native.CopyFrom(Native(format=FORMAT, json=json_of))
    return [message for message, _ in runs]


def _timed(message: Message, node: Node) -> Message:
    time: Timestamp | None = node.time("timestamp")
    if time is not None:
        message.timestamp.CopyFrom(time)
    return message


def _said(node: Node) -> tuple[Role | None, list[Part]]:
    """Who says a part of a request, and what. No role: whoever said what stands before it."""
    kind = node.required("part_kind")
    match kind:
        case "system-prompt":
            rest = beside(node, "part_kind", "content", "timestamp")
            return ROLE_SYSTEM, [text_part(node.text("content"), rest)]
        case "user-prompt":
            return ROLE_USER, _content(node)
        case "tool-return":
            return ROLE_TOOL, [_result(node)]
        case "retry-prompt" if node.text("tool_name"):
            return ROLE_TOOL, [_result(node)]
        case "retry-prompt" | "retry-feedback":
            return ROLE_USER, [text_part(_text(node)[0], _kind_of(node, kind))]
    return None, [_opaque(node, kind)]


def _kind_of(node: Node, kind: str) -> bytes:
    known = ("part_kind", "content", "timestamp", "tool_name", "tool_call_id")
    rest = json.loads(beside(node, *known) or b"{}")
    return compact_json({**rest, "part_kind": kind})


def _opaque(node: Node, kind: str) -> Part:
    return Part(opaque=OpaquePart(format=FORMAT, type=kind, json=compact_json(node.value)))


def _text(node: Node) -> tuple[str, bool]:
    """A content as text, and whether it is JSON that is no text."""
    content = node.value.get("content")
    if isinstance(content, str):
        return node.text("content"), False
    return compact_json(content).decode(), True


def _result(node: Node) -> Part:
    kind = node.required("part_kind")
    result = ToolResultPart(call_id=node.required("tool_call_id"), name=node.required("tool_name"))
    # A retry is told to the model as a failure.
    result.is_error = kind == "retry-prompt" or node.text("outcome") not in ("", "success")
    told: Json = {"part_kind": kind} if kind == "retry-prompt" else {}
    content = node.value.get("content")
    if isinstance(content, list) and any(_is_medium(one) for one in content):
        result.parts.extend(_content(node))
    elif content is not None:
        text, is_json = _text(node)
        result.parts.append(text_part(text))
        told |= {"content": "json"} if is_json else {}
    known = ("part_kind", "tool_name", "content", "tool_call_id", "timestamp")
    rest = json.loads(beside(node, *known) or b"{}") | told
    if rest.get("outcome") == "success":
        del rest["outcome"]
    return Part(tool_result=result, provider_metadata_json=compact_json(rest) if rest else b"")


def _is_medium(one: object) -> bool:
    return isinstance(one, Mapping) and str(one.get("kind", "")).endswith(("-url", "binary"))


def _content(node: Node) -> list[Part]:
    """What a user says, or a tool with pictures."""
    content = node.value.get("content")
    if isinstance(content, str):
        return [text_part(content)]
    if not isinstance(content, list):
        raise node.error("content", "a string or a list of texts and media is needed")
    parts: list[Part] = []
    for at, one in enumerate(content):
        if isinstance(one, str):
            parts.append(text_part(one))
        elif isinstance(one, Mapping):
            parts.append(_piece(Node(one, f"{node.at('content')}[{at}]")))
        else:
            raise node.error("content", "a list of texts and media is needed")
    return parts


def _piece(node: Node) -> Part:
    kind = node.text("kind")
    mime_type = node.text("media_type")
    match kind:
        case "text-content":
            rest = json.loads(beside(node, "content") or b"{}")
            return text_part(node.text("content"), compact_json(rest))
        case "binary":
            part = medium(decoded(node, "data"), "", mime_type)
        case "image-url":
            image = ImagePart(uri=node.required("url"), mime_type=mime_type)
            part = Part(image=image)
        case "document-url":
            part = Part(file=FilePart(uri=node.required("url"), mime_type=mime_type))
        case _:
            return _opaque(node, kind)
    known = ("kind", "data", "url", "media_type", "identifier", "force_download")
    part.provider_metadata_json = beside(node, *known)
    return part


def _response(node: Node, native: bytes) -> Message:
    message = Message(
        role=ROLE_ASSISTANT,
        parts=[_of_reply(part) for part in node.nodes("parts")],
        provider=node.text("provider_name"),
        model=node.text("model_name"),
        stop_reason=node.text("finish_reason"),
        native=Native(format=FORMAT, json=native),
    )
    if (usage := node.node("usage")) is not None:
        message.usage.CopyFrom(_usage(usage))
    return _timed(message, node)


def _of_reply(node: Node) -> Part:
    kind = node.required("part_kind")
    match kind:
        case "text":
            return text_part(node.text("content"), beside(node, "part_kind", "content"))
        case "thinking":
            rest = beside(node, "part_kind", "content", "id", "signature")
            return Part(reasoning=_thought(node), provider_metadata_json=rest)
        case "tool-call":
            call = ToolCallPart(
                call_id=node.required("tool_call_id"),
                name=node.required("tool_name"),
                arguments_json=arguments_of(node.value.get("args")),
                item_id=node.text("id"),
            )
            rest = beside(node, "part_kind", "tool_name", "args", "tool_call_id", "id")
            return Part(tool_call=call, provider_metadata_json=rest)
        case "file":
            content = node.node("content")
            if content is not None and content.text("kind") == "binary":
                part = medium(decoded(content, "data"), "", content.text("media_type"))
                part.provider_metadata_json = beside(node, "part_kind", "content")
                return part
    return _opaque(node, kind)


def _thought(node: Node) -> ReasoningPart:
    """Reasoning. What Pydantic AI calls its signature is what OpenAI has encrypted, and Anthropic
    where it shows nothing."""
    name, signature = node.text("id"), node.text("signature").encode()
    thought = ReasoningPart(text=node.text("content"))
    if name == REDACTED:
        thought.redacted_data = signature
    elif name:
        thought.item_id, thought.redacted_data = name, signature
    else:
        thought.signature = signature
    return thought


def _usage(node: Node) -> Usage:
    cached, written = node.number("cache_read_tokens"), node.number("cache_write_tokens")
    # Pydantic AI's input is all of it.
    fresh = (node.number("input_tokens") or 0) - (cached or 0) - (written or 0)
    return Usage(
        input_tokens=max(fresh, 0),
        output_tokens=node.number("output_tokens"),
        cache_read_tokens=cached,
        cache_write_tokens=written,
        cache_write_1h_tokens=node.number("cache_write_1h_tokens"),
        reasoning_tokens=node.number("output_reasoning_tokens"),
    )
