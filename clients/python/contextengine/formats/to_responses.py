"""OpenAI Responses: the `input` of a request, to."""

from __future__ import annotations

import base64
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
    ToolResultPart,
)
from .responses import FORMAT

Json = dict[str, Any]

_NAMES = {ROLE_ASSISTANT: "assistant", ROLE_DEVELOPER: "developer", ROLE_SYSTEM: "system"}
"""All other roles are a user's to the model."""


def to_responses(messages: Iterable[Message]) -> list[Json]:
    """The input items of a request. What came from Responses comes back as it was; what the format
    cannot say is left out.

    A message becomes as many items as it has calls, results and stretches of text. Reasoning is
    left out where it has not the id of an item of OpenAI's: nobody else's is taken.
    """
    items: list[Json] = []
    custom: set[str] = set()
    for message in messages:
        written = _written(message, custom)
        custom |= {one["call_id"] for one in written if one.get("type") == "custom_tool_call"}
        items += written
    return items


def _written(message: Message, custom: set[str]) -> list[Json]:
    """The items of a message. `custom`: calls before it whose arguments are no JSON."""
    if message.native.format == FORMAT:
        native = json.loads(message.native.json)
        return native if isinstance(native, list) else [native]
    items: list[Json] = []
    text: list[Part] = []
    role = _NAMES.get(message.role, "user")
    for part in message.parts:
        item = _item(part, custom)
        if item is None:
            text.append(part)
            continue
        items += [*_said(role, text), item]
        text = []
    return items + _said(role, text)


def _said(role: str, parts: Sequence[Part]) -> list[Json]:
    """The item of a stretch of text, pictures and files; none where it holds nothing."""
    content = [one for one in (_piece(part, role) for part in parts) if one is not None]
    return [{"type": "message", "role": role, "content": content}] if content else []


def _item(part: Part, custom: set[str]) -> Json | None:
    """The item that a part is by itself. None: it belongs into a message, or nowhere."""
    more = _more(part)
    match part.WhichOneof("kind"):
        case "reasoning" if part.reasoning.item_id:
            thought = part.reasoning
            summary = [{"type": "summary_text", "text": thought.text}] if thought.text else []
            secret = thought.redacted_data.decode(errors="replace")
            hidden = {"encrypted_content": secret} if secret else {}
            return {
                "type": "reasoning",
                "id": thought.item_id,
                "summary": summary,
                **hidden,
                **more,
            }
        case "tool_call":
            call = part.tool_call
            arguments = call.arguments_json.decode(errors="replace")
            is_custom = more.get("type") in ("custom_tool_call", "custom")
            item: Json = {"call_id": call.call_id, "name": call.name}
            item |= {"input": arguments} if is_custom else {"arguments": arguments or "{}"}
            item |= {"id": call.item_id} if call.item_id else {}
            item |= {"namespace": call.namespace} if call.namespace else {}
            return {**item, **more, "type": "custom_tool_call" if is_custom else "function_call"}
        case "tool_result":
            kind = "custom_tool_call" if part.tool_result.call_id in custom else "function_call"
            return {
                "type": f"{kind}_output",
                "call_id": part.tool_result.call_id,
                "output": _output(part.tool_result),
                **more,
            }
        case "opaque" if part.opaque.format == FORMAT and not _is_content(part):
            return dict(json.loads(part.opaque.json))
    return None


def _is_content(part: Part) -> bool:
    """Whether an opaque part stands within a message: a refusal does."""
    return part.opaque.type in ("refusal", "input_audio")


def _output(result: ToolResultPart) -> str | list[Json]:
    """A result as one text, or as a list where it holds more."""
    pieces = [one for one in (_piece(part, "user") for part in result.parts) if one is not None]
    if all(piece.keys() == {"type", "text"} for piece in pieces) and len(pieces) < 2:
        return "".join(piece["text"] for piece in pieces)
    return pieces


def _piece(part: Part, role: str) -> Json | None:
    """A part within a message. None: the format has no place for it."""
    more = _more(part)
    match part.WhichOneof("kind"):
        case "text":
            kind = "output_text" if role == "assistant" else "input_text"
            return {"type": kind, "text": part.text.text, **more}
        case "image":
            detail = {"detail": part.image.detail} if part.image.detail else {}
            return {"type": "input_image", **_where(part.image, "image_url"), **detail, **more}
        case "file":
            name = {"filename": part.file.name} if part.file.name else {}
            key = "file_data" if part.file.data else "file_url"
            return {"type": "input_file", **_where(part.file, key), **name, **more}
        case "opaque" if part.opaque.format == FORMAT:
            return dict(json.loads(part.opaque.json))
    return None


def _where(source: ImagePart | FilePart, key: str) -> Json:
    """Where a medium is: by its bytes, its address, or its id with the provider."""
    if source.WhichOneof("source") == "uri":
        address = "://" in source.uri or source.uri.startswith("data:")
        return {key if address else "file_id": source.uri}
    data = base64.b64encode(source.data).decode()
    return {key: f"data:{source.mime_type};base64,{data}"}


def _more(part: Part) -> Json:
    """What OpenAI adds to a part. What others add has no place."""
    found = json.loads(part.provider_metadata_json) if part.provider_metadata_json else {}
    return found if isinstance(found, dict) else {}
