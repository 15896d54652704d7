"""Pydantic AI: messages as `ModelMessagesTypeAdapter` reads them, to."""

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
    Usage,
)
from .common import Json, calls_of, encoded, joined, more_of
from .pydantic_ai import FORMAT, OF, REDACTED

_FINISHED = ("stop", "length", "content_filter", "tool_call", "error")
"""Why a model stopped, in Pydantic AI's words: it takes no others."""
_PROVIDER = ("provider_name", "provider_details")


def to_pydantic_ai(messages: Iterable[Message]) -> list[Json]:
    """Requests and responses. What came from Pydantic AI comes back as it was, the pieces of a
    request in one again; what the format cannot say is left out."""
    names: dict[str, str] = {}
    written: list[Json] = []
    last: list[int] | None = None
    for message in messages:
        names |= calls_of(message)
        one = _written(message, names)
        of = one.pop(OF, None)
        if of is not None and last is not None and of == [last[0] + 1, last[1]]:
            written[-1]["parts"] = [*written[-1]["parts"], *one["parts"]]
        else:
            written.append(one)
        last = of
    return written


def _written(message: Message, names: dict[str, str]) -> Json:
    """`names`: of the tools that calls so far named, by the ids of the calls."""
    if message.native.format == FORMAT:
        native: Json = json.loads(message.native.json)
        return native
    if message.role == ROLE_ASSISTANT:
        return _response(message)
    results = [part for part in message.parts if part.HasField("tool_result")]
    others = [part for part in message.parts if not part.HasField("tool_result")]
    parts = [_result(part, names) for part in results]
    if message.role in (ROLE_SYSTEM, ROLE_DEVELOPER):
        parts += [_system(part) for part in others if part.HasField("text")]
    elif others or not parts:
        parts += _asked(others)
    stamp = _stamp(message)
    return {"kind": "request", "parts": [_with(part, stamp) for part in parts]}


def _stamp(message: Message) -> Json:
    if not message.HasField("timestamp"):
        return {}
    return {"timestamp": message.timestamp.ToJsonString()}


def _with(part: Json, stamp: Json) -> Json:
    """A part with the time of its message, where it has none of its own."""
    return {**stamp, **part}


def _system(part: Part) -> Json:
    more = more_of(part, "dynamic_ref", "scope", "context_id", "metadata")
    return {"part_kind": "system-prompt", "content": part.text.text, **more}


def _asked(parts: Sequence[Part]) -> list[Json]:
    """What a user says: words and media as one prompt, what Pydantic AI adds of its own apart."""
    written: list[Json] = []
    content: list[str | Json] = []
    for part in parts:
        more = more_of(part, "part_kind", "retry", "metadata") if part.HasField("text") else {}
        own = _own(part)
        if "part_kind" in more:
            written += _prompt(content)
            content = []
            written.append({"content": part.text.text, **more})
        elif own is not None and "part_kind" in own:
            written += _prompt(content)
            content = []
            written.append(own)
        else:
            piece = _piece(part)
            content += [] if piece is None else [piece]
    return written + _prompt(content, needed=not written)


def _prompt(content: Sequence[str | Json], needed: bool = False) -> list[Json]:
    """The prompt of these; none where it says nothing and is not needed."""
    if not content and not needed:
        return []
    said = content[0] if len(content) == 1 and isinstance(content[0], str) else list(content)
    return [{"part_kind": "user-prompt", "content": said}]


def _own(part: Part) -> Json | None:
    """What only Pydantic AI knows."""
    if part.opaque.format != FORMAT:
        return None
    found: Json = json.loads(part.opaque.json)
    return found


def _piece(part: Part) -> str | Json | None:
    match part.WhichOneof("kind"):
        case "text":
            more = more_of(part, "kind", "metadata")
            if more.get("kind") == "text-content":
                return {"content": part.text.text, **more}
            return part.text.text
        case "image":
            return {**_where(part.image, "image-url"), **more_of(part, "vendor_metadata")}
        case "file":
            return {**_where(part.file, "document-url"), **more_of(part, "vendor_metadata")}
    return _own(part)


def _where(source: ImagePart | FilePart, kind: str) -> Json:
    mime = {"media_type": source.mime_type} if source.mime_type else {}
    if source.WhichOneof("source") == "uri":
        return {"kind": kind, "url": source.uri, **mime}
    mime = {"media_type": source.mime_type or "application/octet-stream"}
    return {"kind": "binary", "data": _safe(encoded(source)), **mime}


def _safe(text: str) -> str:
    """Base64 in the alphabet that Pydantic writes."""
    return text.translate(str.maketrans("+/", "-_"))


def _result(part: Part, names: dict[str, str]) -> Json:
    result = part.tool_result
    more = more_of(part, "part_kind", "outcome", "tool_kind", "metadata", "retry")
    kind = more.pop("part_kind", "tool-return")
    failed = {"outcome": "failed"} if result.is_error and kind == "tool-return" else {}
    return {
        "part_kind": kind,
        "tool_name": result.name or names.get(result.call_id, "unknown"),
        "content": _answer(part),
        "tool_call_id": result.call_id,
        **failed,
        **more,
    }


def _answer(part: Part) -> Any:
    """A result: the value that JSON says, the text, or texts and media."""
    parts = part.tool_result.parts
    if more_of(part, "content"):
        try:
            return json.loads(joined(parts))
        except ValueError:  # cut off by now
            pass
    if all(one.HasField("text") for one in parts):
        # A list of texts is JSON to Pydantic AI, and would be shown so.
        return joined(parts)
    return [piece for piece in map(_piece, parts) if piece is not None]


def _response(message: Message) -> Json:
    parts = [one for one in map(_of_reply, message.parts) if one is not None]
    written: Json = {"kind": "response", "parts": parts, **_stamp(message)}
    if message.HasField("usage"):
        written["usage"] = _usage(message.usage)
    if message.model:
        written["model_name"] = message.model
    if message.provider:
        written["provider_name"] = message.provider
    if message.stop_reason in _FINISHED:
        written["finish_reason"] = message.stop_reason
    return written


def _of_reply(part: Part) -> Json | None:
    more = more_of(part, *_PROVIDER)
    match part.WhichOneof("kind"):
        case "text":
            more |= more_of(part, "id", "citations")
            return {"part_kind": "text", "content": part.text.text, **more}
        case "reasoning":
            return {"part_kind": "thinking", **_thought(part.reasoning), **more}
        case "tool_call":
            call = part.tool_call
            own = {"id": call.item_id} if call.item_id else {}
            return {
                "part_kind": "tool-call",
                "tool_name": call.name,
                "args": call.arguments_json.decode(errors="replace"),
                "tool_call_id": call.call_id,
                **own,
                **more,
                **more_of(part, "tool_kind"),
            }
        case "image" if part.image.data:
            return {"part_kind": "file", "content": _where(part.image, ""), **more}
        case "file" if part.file.data:
            return {"part_kind": "file", "content": _where(part.file, ""), **more}
    return _own(part)


def _thought(thought: ReasoningPart) -> Json:
    signature = thought.signature or thought.redacted_data
    bound = {"signature": signature.decode(errors="replace")} if signature else {}
    name = thought.item_id or (REDACTED if thought.redacted_data else "")
    return {"content": thought.text, **({"id": name} if name else {}), **bound}


def _usage(usage: Usage) -> Json:
    """Pydantic AI's input is all of it."""
    counts: Json = {
        "input_tokens": usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        "output_tokens": usage.output_tokens,
    }
    for name, given in (
        ("cache_read_tokens", "cache_read_tokens"),
        ("cache_write_tokens", "cache_write_tokens"),
        ("cache_write_1h_tokens", "cache_write_1h_tokens"),
        ("output_reasoning_tokens", "reasoning_tokens"),
    ):
        if usage.HasField(given):
            counts[name] = getattr(usage, given)
    return counts
