"""The AI SDK of Vercel: `ModelMessage`, to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from ..types import (
    ROLE_ASSISTANT,
    ROLE_DEVELOPER,
    ROLE_SYSTEM,
    ROLE_TOOL,
    FilePart,
    ImagePart,
    Message,
    Part,
    ReasoningPart,
    ToolResultPart,
)
from .ai_sdk import FORMAT
from .common import Json, Rows, as_value, calls_of, encoded, in_steps, joined, more_of

_NAMES = {
    ROLE_ASSISTANT: "assistant",
    ROLE_DEVELOPER: "system",
    ROLE_SYSTEM: "system",
    ROLE_TOOL: "tool",
}
"""All other roles are a user's to the model."""

_OPTIONS = ("providerOptions",)


def to_ai_sdk(messages: Iterable[Message]) -> list[Json]:
    """Messages of a prompt. What came from the AI SDK comes back as it was; what the format cannot
    say is left out.

    Tool results stand in a message of their own. What is said beside some of a step's results
    stands behind them all. Bytes of pictures and files are base64.
    """
    names: dict[str, str] = {}
    written: list[tuple[Message, Rows]] = []
    for message in messages:
        names |= calls_of(message)
        written.append((message, _written(message, names)))
    return in_steps(written)


def _written(message: Message, names: dict[str, str]) -> Rows:
    """`names`: of the tools that calls so far named, by the ids of the calls."""
    if message.native.format == FORMAT:
        return [json.loads(message.native.json)], []
    role = _NAMES.get(message.role, "user")
    if role == "system":
        return [], [{"role": role, "content": joined(message.parts)}]
    if role == "assistant":
        return [], [{"role": role, "content": _content(message.parts, names)}]
    apart = [part for part in message.parts if _is_tools(part, role)]
    others = [part for part in message.parts if not _is_tools(part, role)]
    results: list[Json] = []
    if apart or role == "tool":
        results.append({"role": "tool", "content": _pieces(apart, names)})
    if results and not others:
        return results, []
    return results, [{"role": "user", "content": _content(others, names)}]


def _is_tools(part: Part, role: str) -> bool:
    """Whether a part stands in a tool's message: a result does, and what only the SDK knows."""
    return part.HasField("tool_result") or (role == "tool" and part.HasField("opaque"))


def _content(parts: Sequence[Part], names: dict[str, str]) -> str | list[Json]:
    """One plain text as a string, anything else as a list."""
    pieces = _pieces(parts, names)
    if len(pieces) == 1 and pieces[0].keys() == {"type", "text"} and pieces[0]["type"] == "text":
        return str(pieces[0]["text"])
    return pieces


def _pieces(parts: Sequence[Part], names: dict[str, str]) -> list[Json]:
    pieces = (_part(part, names) for part in parts)
    return [piece for piece in pieces if piece is not None]


def _part(part: Part, names: dict[str, str]) -> Json | None:
    options = more_of(part, *_OPTIONS) or _bound(part)
    match part.WhichOneof("kind"):
        case "text":
            return {"type": "text", "text": part.text.text, **options}
        case "reasoning":
            thought = {"type": "reasoning", "text": part.reasoning.text}
            return {**thought, **(options or _signed(part.reasoning))}
        case "tool_call":
            call = part.tool_call
            written: Json = {"type": "tool-call", "toolCallId": call.call_id, "toolName": call.name}
            more = more_of(part, "providerExecuted")
            return {**written, "input": as_value(call.arguments_json), **options, **more}
        case "tool_result":
            return _result(part, names)
        case "image":
            kind = more_of(part, "type").get("type", "image")
            where = part.image.uri or encoded(part.image)
            mime = {"mediaType": part.image.mime_type} if part.image.mime_type else {}
            return {"type": kind, "data" if kind == "file" else "image": where, **mime, **options}
        case "file":
            where = part.file.uri or encoded(part.file)
            name = {"filename": part.file.name} if part.file.name else {}
            mime = {"mediaType": part.file.mime_type or "application/octet-stream"}
            return {"type": "file", "data": where, **mime, **name, **options}
        case "opaque" if part.opaque.format == FORMAT:
            return dict(json.loads(part.opaque.json))
    return None


def _bound(part: Part) -> Json:
    """What binds a part to its reasoning, where only Gemini says so."""
    signature = part.thought_signature.decode(errors="replace")
    return {"providerOptions": {"google": {"thoughtSignature": signature}}} if signature else {}


def _signed(thought: ReasoningPart) -> Json:
    """What binds reasoning, where its provider looks for it."""
    secret = thought.redacted_data.decode(errors="replace")
    if thought.item_id:
        hidden = {"reasoningEncryptedContent": secret} if secret else {}
        return {"providerOptions": {"openai": {"itemId": thought.item_id, **hidden}}}
    if secret:
        return {"providerOptions": {"anthropic": {"redactedData": secret}}}
    if thought.signature:
        signature = thought.signature.decode(errors="replace")
        return {"providerOptions": {"anthropic": {"signature": signature}}}
    return {}


def _result(part: Part, names: dict[str, str]) -> Json:
    result = part.tool_result
    written: Json = {
        "type": "tool-result",
        "toolCallId": result.call_id,
        "toolName": result.name or names.get(result.call_id, "unknown"),
    }
    told = more_of(part, "output").get("output", {})
    output = _output(result, str(told.get("type", "")))
    options = {key: told[key] for key in _OPTIONS if key in told}
    return {**written, "output": {**output, **options}, **more_of(part, *_OPTIONS)}


def _output(result: ToolResultPart, kind: str) -> Json:
    """`kind`: what the SDK said of the output. Empty: nothing."""
    text = joined(result.parts)
    if kind == "execution-denied":
        return {"type": kind, **({"reason": text} if text else {})}
    if kind in ("json", "error-json"):
        try:
            return {"type": kind, "value": json.loads(text)}
        except ValueError:  # cut off by now
            pass
    if result.is_error:
        return {"type": "error-text", "value": text}
    texts = all(part.HasField("text") for part in result.parts)
    if kind != "content" and texts and len(result.parts) < 2:
        return {"type": "text", "value": text}
    pieces = (_piece(one) for one in result.parts)
    return {"type": "content", "value": [piece for piece in pieces if piece is not None]}


def _piece(part: Part) -> Json | None:
    """A part of a result."""
    more = more_of(part, "type", *_OPTIONS)
    match part.WhichOneof("kind"):
        case "text":
            return {"type": "text", "text": part.text.text, **more}
        case "image":
            return {**_where(part.image, "image"), **more}
        case "file":
            name = {"filename": part.file.name} if part.file.name else {}
            return {**_where(part.file, "file"), **name, **more}
        case "opaque" if part.opaque.format == FORMAT:
            return dict(json.loads(part.opaque.json))
    return None


def _where(source: ImagePart | FilePart, kind: str) -> Json:
    mime = {"mediaType": source.mime_type} if source.mime_type else {}
    if source.WhichOneof("source") == "uri":
        return {"type": f"{kind}-url", "url": source.uri, **mime}
    return {"type": f"{kind}-data", "data": encoded(source), **mime}
