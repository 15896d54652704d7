"""Pi and OpenClaw: entries of a session, and messages as an agent holds them, from."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

from ..messages import compact_json
from ..types import (
    ROLE_ASSISTANT,
    ROLE_CUSTOM,
    ROLE_TOOL,
    ROLE_USER,
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
from .node import Node, Source, load, storable

FORMAT = "pi"
"""The name of the format in `Message.native`."""


def from_pi(entries: Iterable[Source]) -> list[Message]:
    """The messages among the entries of a session, or of messages as an agent holds them
    (`AgentMessage`), each keeping its original in `native`, byte for byte where it is given as
    text.

    An entry's id becomes the message's; what an agent holds has none: see `with_ids`. Entries that
    no model sees (the session's head, changes of the model or thinking level, labels) are passed
    over, and compactions, which say of other entries that they are summarized: `read_transcript`
    reads those. The entries are taken as they stand: of a file with branches, give those of one.
    Raises FormatError.
    """
    loaded = (load(source) for source in entries)
    return [
        message_of(node, raw)
        for node, raw in loaded
        if _is_held(node) or node.required("type") in SPOKEN
    ]


SPOKEN = ("message", "custom_message", "branch_summary")
"""The types of entries that a model sees."""


def _is_held(node: Node) -> bool:
    """Whether this is a message by itself, and no entry of a session."""
    return "type" not in node.value and "role" in node.value


def message_of(entry: Node, native: bytes) -> Message:
    """The message of an entry of one of the types that a model sees, or of one as an agent holds
    it."""
    match "message" if _is_held(entry) else entry.required("type"):
        case "custom_message":
            return _custom(entry, entry, native, "custom", _content(entry))
        case "branch_summary":
            said = [Part(text=TextPart(text=entry.text("summary")))]
            return _custom(entry, entry, native, "branchSummary", said)
    node = entry if _is_held(entry) else entry.node("message")
    if node is None:
        raise entry.error("message", "an object is needed")
    if node.required("role") in _OWN_ROLES or _is_hidden(node):
        return _custom(entry, node, native, node.required("role"), _own_content(node))
    message = Message(id=entry.text("id"), native=Native(format=FORMAT, json=native))
    time = node.time("timestamp") or entry.time("timestamp")
    if time is not None:
        message.timestamp.CopyFrom(time)
    parts = _content(node)
    match node.required("role"):
        case "user":
            message.role = ROLE_USER
        case "assistant":
            message.role = ROLE_ASSISTANT
            message.provider, message.model = node.text("provider"), node.text("model")
            message.api, message.stop_reason = node.text("api"), node.text("stopReason")
            if (usage := node.node("usage")) is not None:
                message.usage.CopyFrom(_usage(usage))
        case "toolResult":
            message.role = ROLE_TOOL
            parts = [Part(tool_result=_result(node, parts))]
        case other:
            message.role, message.custom_role = ROLE_CUSTOM, other
    message.parts.extend(parts)
    return message


_OWN_ROLES = ("custom", "bashExecution", "branchSummary", "compactionSummary")
"""Roles of the harness's own messages, some of which say what they say in other members."""
_OPENCLAW_MODELS = ("delivery-mirror", "gateway-injected")
"""What OpenClaw itself wrote down as a reply: one that it delivered, its answer to a command, what
an aborted one had said."""


def _is_hidden(node: Node) -> bool:
    """Whether the harness keeps it for people to see, and shows it to no model."""
    value = node.value
    if value.get("excludeFromContext") is True:
        return True
    by = value.get("role"), value.get("provider")
    return by == ("assistant", "openclaw") and value.get("model") in _OPENCLAW_MODELS


def _own_content(node: Node) -> list[Part]:
    match node.required("role"):
        case "bashExecution":
            said = f"$ {node.text('command')}\n{node.text('output')}"
        case "branchSummary" | "compactionSummary":
            said = node.text("summary")
        case _:
            return _content(node)
    return [Part(text=TextPart(text=said))]


def _custom(entry: Node, node: Node, native: bytes, role: str, parts: Iterable[Part]) -> Message:
    """An entry of the harness's own. One that it shows to no model is labelled `excluded`."""
    message = Message(
        id=entry.text("id"),
        role=ROLE_CUSTOM,
        custom_role=role,
        parts=parts,
        native=Native(format=FORMAT, json=native),
    )
    time = node.time("timestamp") or entry.time("timestamp")
    if time is not None:
        message.timestamp.CopyFrom(time)
    if kind := node.text("customType"):
        message.labels["custom_type"] = kind
    if _is_hidden(node):
        message.labels["excluded"] = "true"
    return message


def _result(node: Node, parts: list[Part]) -> ToolResultPart:
    details = node.value.get("details")
    return ToolResultPart(
        call_id=node.required("toolCallId"),
        name=node.text("toolName"),
        parts=parts,
        is_error=node.value.get("isError") is True,
        details_json=b"" if details is None else compact_json(details),
    )


def _content(node: Node) -> list[Part]:
    content = node.value.get("content")
    if isinstance(content, str):
        return [Part(text=TextPart(text=storable(content)))]
    if content is not None and not isinstance(content, list):
        raise node.error("content", "a string or a list of parts is needed")
    return [_part(part) for part in node.nodes("content")]


def _part(node: Node) -> Part:
    match node.required("type"):
        case "text":
            return Part(
                text=TextPart(text=node.text("text")),
                provider_metadata_json=node.rest("type", "text"),
            )
        case "thinking":
            signature = node.text("thinkingSignature").encode()
            reasoning = ReasoningPart(text=node.text("thinking"), signature=signature)
            rest = node.rest("type", "thinking", "thinkingSignature")
            return Part(reasoning=reasoning, provider_metadata_json=rest)
        case "toolCall":
            call = ToolCallPart(call_id=node.required("id"), name=node.required("name"))
            call.arguments_json = _arguments(node)
            rest = node.rest("type", "id", "name", "arguments", "thoughtSignature")
            signature = node.text("thoughtSignature").encode()
            return Part(tool_call=call, thought_signature=signature, provider_metadata_json=rest)
        case "image":
            try:
                data = base64.b64decode(node.required("data"), validate=True)
            except binascii.Error:
                raise node.error("data", "base64 is needed") from None
            image = ImagePart(data=data, mime_type=node.text("mimeType"))
            return Part(image=image, provider_metadata_json=node.rest("type", "data", "mimeType"))
        case kind:
            return Part(opaque=OpaquePart(format=FORMAT, type=kind, json=compact_json(node.value)))


def _arguments(node: Node) -> bytes:
    arguments = node.value.get("arguments")
    if isinstance(arguments, str):
        return storable(arguments).encode()
    return compact_json({} if arguments is None else arguments)


def _usage(node: Node) -> Usage:
    cost = node.node("cost")
    total = None if cost is None else cost.amount("total")
    return Usage(
        input_tokens=node.number("input"),
        output_tokens=node.number("output"),
        cache_read_tokens=node.number("cacheRead"),
        cache_write_tokens=node.number("cacheWrite"),
        total_tokens=node.number("totalTokens"),
        # Pi writes US dollars.
        cost_micro_usd=None if total is None else round(total * 1_000_000),
    )
