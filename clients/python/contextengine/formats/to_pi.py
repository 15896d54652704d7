"""Pi and OpenClaw: messages as an agent holds them, and entries of a session, to."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import chain
from typing import Any

from ..ids import new_id
from ..types import (
    ROLE_ASSISTANT,
    ROLE_CUSTOM,
    ROLE_TOOL,
    Message,
    Part,
    ToolResultPart,
    Usage,
)
from .common import Json, Rows, as_object, calls_of, encoded, in_steps, joined, more_of
from .pi import FORMAT

_ENTRIES = {
    "branch_summary": ("branchSummary", ("summary", "fromId")),
    "custom_message": ("custom", ("customType", "content", "display", "details")),
}
"""Entries that stand for a message: its role, and what it takes of the entry."""


def to_pi(messages: Iterable[Message]) -> list[Json]:
    """Messages as an agent holds them (`AgentMessage`). What came from Pi comes back as it was;
    what the format cannot say is left out.

    Instructions have no place among them and become a user's. A tool message with several results
    becomes several. What is said beside some of a step's results stands behind them all. A reply
    says what Pi insists on: a usage of zeros where none is known.
    """
    return in_steps((message, _spoken(message, names)) for message, names in _named(messages))


def to_pi_entries(messages: Iterable[Message]) -> list[Json]:
    """Entries of a session, each below the one before it. What came from Pi comes back as it was,
    with the parent that it had."""
    entries: list[Json] = []
    for message, names in _named(messages):
        native = _native(message)
        if native is not None and "type" in native:
            entries.append(native)
            continue
        for at, spoken in enumerate(chain(*_spoken(message, names))):
            entry: Json = {"type": "message"}
            entry["id"] = message.id if message.id and not at else new_id()
            entry["parentId"] = entries[-1].get("id") if entries else None
            if message.HasField("timestamp"):
                entry["timestamp"] = message.timestamp.ToJsonString()
            entries.append({**entry, "message": spoken})
    return entries


def _named(messages: Iterable[Message]) -> Iterable[tuple[Message, dict[str, str]]]:
    """Each with the names of the tools that calls so far named, by the ids of the calls."""
    names: dict[str, str] = {}
    for message in messages:
        names |= calls_of(message)
        yield message, names


def _native(message: Message) -> Json | None:
    return json.loads(message.native.json) if message.native.format == FORMAT else None


def _spoken(message: Message, names: dict[str, str]) -> Rows:
    native = _native(message)
    if native is not None:
        return [_of_entry(native, message)], []
    stamp = (
        {"timestamp": message.timestamp.ToMilliseconds()} if message.HasField("timestamp") else {}
    )
    results = [part.tool_result for part in message.parts if part.HasField("tool_result")]
    others = [part for part in message.parts if not part.HasField("tool_result")]
    spoken = [{**_result(result, names), **stamp} for result in results]
    if results and not others:
        return spoken, []
    return spoken, [{**_message(message, others), **stamp}]


def _of_entry(native: Json, message: Message) -> Json:
    """The message that an entry holds, or stands for."""
    kind = native.get("type")
    if kind == "message":
        found: Json = native["message"]
        return found
    if kind is None:
        return native
    stamp = (
        {"timestamp": message.timestamp.ToMilliseconds()} if message.HasField("timestamp") else {}
    )
    role, told = _ENTRIES[str(kind)]
    return {"role": role, **{key: native[key] for key in told if key in native}, **stamp}


def _message(message: Message, parts: Iterable[Part]) -> Json:
    content = [piece for piece in map(_part, parts) if piece is not None]
    if message.role == ROLE_ASSISTANT:
        calls = any(piece["type"] == "toolCall" for piece in content)
        return {
            "role": "assistant",
            "content": content,
            "api": message.api,
            "provider": message.provider,
            "model": message.model,
            "usage": _usage(message.usage),
            "stopReason": message.stop_reason or ("toolUse" if calls else "stop"),
        }
    if message.role == ROLE_TOOL:
        return {"role": "user", "content": content}
    if message.role != ROLE_CUSTOM:
        return {"role": "user", "content": _plain(content)}
    kind = {"customType": message.labels["custom_type"]} if "custom_type" in message.labels else {}
    hidden = {"excludeFromContext": True} if "excluded" in message.labels else {}
    match message.custom_role:
        case "branchSummary" | "compactionSummary":
            return {"role": message.custom_role, "summary": joined(parts)}
        case "bashExecution":
            command, _, output = joined(parts).removeprefix("$ ").partition("\n")
            return {"role": "bashExecution", "command": command, "output": output, **hidden}
    return {"role": message.custom_role, **kind, "content": content, **hidden}


def _plain(content: list[Json]) -> str | list[Json]:
    """One text alone as a string."""
    if len(content) == 1 and content[0].keys() == {"type", "text"}:
        return str(content[0]["text"])
    return content


def _result(result: ToolResultPart, names: dict[str, str]) -> Json:
    content = [piece for piece in map(_part, result.parts) if piece is not None]
    written: Json = {
        "role": "toolResult",
        "toolCallId": result.call_id,
        "toolName": result.name or names.get(result.call_id, ""),
        "content": content,
    }
    details = {"details": json.loads(result.details_json)} if result.details_json else {}
    return {**written, **details, "isError": result.is_error}


def _part(part: Part) -> Json | None:
    match part.WhichOneof("kind"):
        case "text":
            return {"type": "text", "text": part.text.text, **more_of(part, "textSignature")}
        case "reasoning":
            thought = part.reasoning
            written = {"type": "thinking", "thinking": thought.text}
            if thought.redacted_data:
                secret = thought.redacted_data.decode(errors="replace")
                return {**written, "thinkingSignature": secret, "redacted": True}
            if thought.signature:
                written["thinkingSignature"] = thought.signature.decode(errors="replace")
            return {**written, **more_of(part, "redacted")}
        case "tool_call":
            call = part.tool_call
            written = {"type": "toolCall", "id": call.call_id, "name": call.name}
            signed = part.thought_signature.decode(errors="replace")
            bound = {"thoughtSignature": signed} if signed else {}
            return {**written, "arguments": as_object(call.arguments_json), **bound}
        case "image" if part.image.data:
            return {"type": "image", "data": encoded(part.image), "mimeType": part.image.mime_type}
        case "opaque" if part.opaque.format == FORMAT:
            return dict(json.loads(part.opaque.json))
    return None


def _usage(usage: Usage) -> Json:
    """As Pi insists on it: numbers, zero where nothing is known, and US dollars."""
    counts: dict[str, Any] = {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cacheRead": usage.cache_read_tokens,
        "cacheWrite": usage.cache_write_tokens,
    }
    total = usage.total_tokens if usage.HasField("total_tokens") else sum(counts.values())
    cost = dict.fromkeys((*counts, "total"), 0)
    return {**counts, "totalTokens": total, "cost": {**cost, "total": usage.cost_micro_usd / 1e6}}
