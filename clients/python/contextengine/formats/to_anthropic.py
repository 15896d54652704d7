"""Anthropic Messages: the `system` and `messages` of a request, to."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..types import (
    ROLE_ASSISTANT,
    ROLE_DEVELOPER,
    ROLE_SYSTEM,
    FilePart,
    ImagePart,
    Message,
    Part,
    ReasoningPart,
    ToolCallPart,
    ToolResultPart,
)
from .anthropic import FORMAT
from .common import has_results

Block = dict[str, Any]


def to_anthropic(messages: Iterable[Message]) -> dict[str, Any]:
    """`system`, where there is one, and `messages` of a request. What came from Anthropic comes
    back as it was.

    Leading instructions become `system`, later ones a user's text, unless they came as such and may
    stand where they do. Tool results are a user's; those that follow each other share a message, as
    the API wants the results of parallel calls, unless they came from Anthropic apart. What the
    format cannot say (unsigned reasoning, other vendors' items) is left out, and a message of
    nothing else with it.
    """
    system: list[Block] = []
    written: list[dict[str, Any]] = []
    answers, made = False, True
    for message in messages:
        native = json.loads(message.native.json) if message.native.format == FORMAT else None
        instructs = message.role in (ROLE_SYSTEM, ROLE_DEVELOPER)
        if instructs and isinstance(native, str):
            content: Any = [{"type": "text", "text": native}]
        elif instructs and isinstance(native, list):
            content = native
        elif isinstance(native, dict):
            content = native["content"]
        else:
            content = _blocks(message.parts)
        if not content:
            continue
        among = instructs and isinstance(native, dict)
        answered, answers = answers, has_results(message)
        own, made = made, message.native.format != FORMAT
        if instructs and not among and not written:
            system += content
        elif answered and answers and (own or made):
            both = [*written[-1]["content"], *content]
            written[-1] = {"role": "user", "content": sorted(both, key=behind_results)}
            made = True
        else:
            role = "assistant" if message.role == ROLE_ASSISTANT else "user"
            role = "system" if among else role
            written.append({"role": role, "content": content})
    before = ""
    for one, after in zip(written, [*(one["role"] for one in written[1:]), ""], strict=False):
        if one["role"] == "system" and not instructs_between(before, after):
            one["role"] = "user"
        before = one["role"]
    return ({"system": system} if system else {}) | {"messages": written}


def behind_results(block: Mapping[str, Any]) -> bool:
    """Whether a block stands behind the results in its message: the API wants these first
    (Anthropic, Handle tool calls)."""
    return block.get("type") != "tool_result"


def instructs_between(before: str, after: str) -> bool:
    """Whether a `system` message may stand between messages of these roles (empty: none): behind
    the user's, and before the model's or last (Anthropic, mid-conversation system messages,
    Limitations)."""
    return before == "user" and after in ("assistant", "")


def _blocks(parts: Sequence[Part]) -> list[Block]:
    return [block for block in map(_block, parts) if block is not None]


def _block(part: Part) -> Block | None:
    block: Block | None = None
    match part.WhichOneof("kind"):
        case "text" if part.text.text:  # the API refuses empty texts
            block = {"type": "text", "text": part.text.text}
        case "reasoning":
            block = _reasoning(part.reasoning)
        case "tool_call":
            block = _call(part.tool_call)
        case "tool_result":
            block = _result(part.tool_result)
        case "image":
            block = {"type": "image", "source": _source(part.image)}
        case "file":
            title = {"title": part.file.name} if part.file.name else {}
            block = {"type": "document", "source": _source(part.file), **title}
        case "opaque" if part.opaque.format == FORMAT:
            return dict(json.loads(part.opaque.json))
    if block is None or not part.provider_metadata_json:
        return block
    return {**block, **json.loads(part.provider_metadata_json)}


def _reasoning(reasoning: ReasoningPart) -> Block | None:
    if reasoning.redacted_data:
        return {
            "type": "redacted_thinking",
            "data": reasoning.redacted_data.decode(errors="replace"),
        }
    if reasoning.signature:
        signature = reasoning.signature.decode(errors="replace")
        return {"type": "thinking", "thinking": reasoning.text, "signature": signature}
    return None


def _call(call: ToolCallPart) -> Block:
    return {
        "type": "tool_use",
        "id": call.call_id,
        "name": call.name,
        "input": _input(call.arguments_json),
    }


def _input(arguments: bytes) -> dict[str, Any]:
    """The arguments as the object that the API insists on; what is none stands under
    `arguments`."""
    text = arguments.decode(errors="replace")
    try:
        value = json.loads(text or "{}")
    except ValueError:
        value = text
    return value if isinstance(value, dict) else {"arguments": value}


def _result(result: ToolResultPart) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": result.call_id}
    content = _blocks(result.parts)
    if content:
        block["content"] = content
    return {**block, "is_error": True} if result.is_error else block


def _source(source: ImagePart | FilePart) -> Block:
    if source.WhichOneof("source") == "uri":
        return {"type": "url", "url": source.uri}
    if source.mime_type == "text/plain":
        return {
            "type": "text",
            "media_type": "text/plain",
            "data": source.data.decode(errors="replace"),
        }
    data = base64.b64encode(source.data).decode()
    return {"type": "base64", "media_type": source.mime_type, "data": data}
