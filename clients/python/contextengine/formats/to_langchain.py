"""LangChain: messages as `messages_from_dict` reads them, to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
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
    ToolResultPart,
    Usage,
)
from .common import Json, Rows, as_value, calls_of, encoded, in_steps, more_of
from .langchain import FORMAT

_TYPES = {ROLE_ASSISTANT: "ai", ROLE_DEVELOPER: "system", ROLE_SYSTEM: "system"}
"""All other roles are a user's to the model."""


def to_langchain(messages: Iterable[Message]) -> list[Json]:
    """Messages, each `{"type": …, "data": {…}}`. What came from LangChain comes back as it was;
    what the format cannot say is left out.

    A tool message with several results becomes several. What is said beside some of a step's
    results stands behind them all.
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
        native: Json = json.loads(message.native.json)
        return [native if "data" in native else {"type": native["type"], "data": native}], []
    own = {"id": message.id} if message.id else {}
    results = [part.tool_result for part in message.parts if part.HasField("tool_result")]
    others = [part for part in message.parts if not part.HasField("tool_result")]
    written = [
        _row("tool", {**_result(result, names), **(own if not at else {})})
        for at, result in enumerate(results)
    ]
    if results and not others:
        return written, []
    return written, [_said(message, others, {} if results else own)]


def _row(kind: str, data: Json) -> Json:
    return {"type": kind, "data": {**data, "type": kind}}


def _said(message: Message, parts: Sequence[Part], own: Json) -> Json:
    kind = _TYPES.get(message.role, "human")
    data: Json = {"content": _content(parts), **own}
    if message.name:
        data["name"] = message.name
    if message.role == ROLE_DEVELOPER:
        data["additional_kwargs"] = {"__openai_role__": "developer"}
    if message.role == ROLE_ASSISTANT:
        data |= _calls(parts) | _told(message)
    return _row(kind, data)


def _content(parts: Sequence[Part]) -> str | list[Json]:
    """One plain text, or none, as a string, anything else as a list."""
    pieces = [piece for piece in map(_block, parts) if piece is not None]
    if not pieces:
        return ""
    if len(pieces) == 1 and pieces[0].keys() == {"type", "text"} and pieces[0]["type"] == "text":
        return str(pieces[0]["text"])
    return pieces


def _block(part: Part) -> Json | None:
    match part.WhichOneof("kind"):
        case "text":
            more = more_of(
                part, "annotations", "cache_control", "citations", "extras", "index", "id"
            )
            return {"type": "text", "text": part.text.text, **more}
        case "reasoning":
            return {**_thought(part.reasoning), **more_of(part, "extras", "index", "summary")}
        case "tool_call":
            return _place(part)
        case "image":
            if more_of(part, "type").get("type") == "image":
                return {"type": "image", **_where(part.image)}
            url = part.image.uri or f"data:{part.image.mime_type};base64,{encoded(part.image)}"
            detail = {"detail": part.image.detail} if part.image.detail else {}
            return {"type": "image_url", "image_url": {"url": url, **detail}}
        case "file":
            name = {"filename": part.file.name} if part.file.name else {}
            return {"type": "file", **_where(part.file), **name}
        case "opaque" if part.opaque.format == FORMAT:
            return dict(json.loads(part.opaque.json))
    return None


def _place(part: Part) -> Json | None:
    """Where a call stands in a content that says so."""
    call, kind = part.tool_call, more_of(part, "block").get("block")
    match kind:
        case "tool_use":
            given = as_value(call.arguments_json)
            return {"type": kind, "id": call.call_id, "name": call.name, "input": given}
        case "tool_call":
            given = as_value(call.arguments_json)
            return {"type": kind, "id": call.call_id, "name": call.name, "args": given}
        case "function_call":
            text = call.arguments_json.decode(errors="replace")
            return {"type": kind, "call_id": call.call_id, "name": call.name, "arguments": text}
    return None


def _thought(thought: ReasoningPart) -> Json:
    secret = thought.redacted_data.decode(errors="replace")
    if thought.item_id:
        summary = [{"type": "summary_text", "text": thought.text}] if thought.text else []
        hidden = {"encrypted_content": secret} if secret else {}
        return {"type": "reasoning", "id": thought.item_id, "summary": summary, **hidden}
    if secret:
        return {"type": "redacted_thinking", "data": secret}
    if thought.signature:
        signature = thought.signature.decode(errors="replace")
        return {"type": "thinking", "thinking": thought.text, "signature": signature}
    return {"type": "reasoning", "reasoning": thought.text}


def _where(source: ImagePart | FilePart) -> Json:
    mime = {"mime_type": source.mime_type} if source.mime_type else {}
    where = (
        {"url": source.uri} if source.WhichOneof("source") == "uri" else {"base64": encoded(source)}
    )
    return {**where, **mime}


def _calls(parts: Sequence[Part]) -> Json:
    """The calls of a reply; those whose arguments are no object apart, as LangChain has them."""
    good: list[Json] = []
    bad: list[Json] = []
    for part in parts:
        if not part.HasField("tool_call"):
            continue
        call, given = part.tool_call, as_value(part.tool_call.arguments_json)
        named = {"name": call.name, "id": call.call_id}
        if isinstance(given, dict):
            good.append({**named, "args": given, "type": "tool_call"})
        else:
            text = call.arguments_json.decode(errors="replace")
            error = more_of(part, "error").get("error")
            bad.append({**named, "args": text, "error": error, "type": "invalid_tool_call"})
    return {"tool_calls": good, "invalid_tool_calls": bad}


def _told(message: Message) -> Json:
    """What the provider said of a reply."""
    said = {
        "model_name": message.model,
        "model_provider": message.provider,
        "finish_reason": message.stop_reason,
    }
    told: Json = {"response_metadata": {key: value for key, value in said.items() if value}}
    return told | ({"usage_metadata": _usage(message.usage)} if message.HasField("usage") else {})


def _usage(usage: Usage) -> Json:
    """LangChain's input is all of it."""
    fresh, cached, written = usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens
    given = fresh + cached + written
    counts: Json = {"input_tokens": given, "output_tokens": usage.output_tokens}
    counts["total_tokens"] = usage.total_tokens or given + usage.output_tokens
    details: dict[str, Any] = {}
    if usage.HasField("cache_read_tokens"):
        details["cache_read"] = cached
    if usage.HasField("cache_write_tokens"):
        details["cache_creation"] = written
    if details:
        counts["input_token_details"] = details
    if usage.HasField("reasoning_tokens"):
        counts["output_token_details"] = {"reasoning": usage.reasoning_tokens}
    return counts


def _result(result: ToolResultPart, names: dict[str, str]) -> Json:
    name = result.name or names.get(result.call_id, "")
    written: Json = {"content": _content(result.parts), "tool_call_id": result.call_id}
    written["status"] = "error" if result.is_error else "success"
    if name:
        written["name"] = name
    if result.details_json:
        written["artifact"] = json.loads(result.details_json)
    return written
