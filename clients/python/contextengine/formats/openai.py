"""OpenAI Chat Completions: the `messages` of a request, from and to."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
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
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from .common import Rows, data_url, in_steps
from .node import Node, Source, load, storable

FORMAT = "openai.chat"
"""The name of the format in `Message.native`."""

ROLES = {
    "user": ROLE_USER,
    "assistant": ROLE_ASSISTANT,
    "tool": ROLE_TOOL,
    "system": ROLE_SYSTEM,
    "developer": ROLE_DEVELOPER,
}
_NAMES = {role: name for name, role in ROLES.items()}


def from_openai(messages: Iterable[Source]) -> list[Message]:
    """Messages, each keeping its original in `native`, byte for byte where it is given as text.

    They have no ids: see `with_ids`. Raises FormatError.
    """
    return [_message(*load(source)) for source in messages]


def to_openai(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The messages of a request. What came from OpenAI comes back as it was; what the format cannot
    say is left out.

    A tool message with several results becomes several. What is said beside some of a step's
    results stands behind them all: the API wants them directly behind the calls. Reasoning and
    other vendors' items have no place.
    """
    return in_steps((message, _written(message)) for message in messages)


def _message(node: Node, native: bytes) -> Message:
    role = ROLES.get(node.required("role"))
    if role is None:
        raise node.error("role", f"one of {', '.join(ROLES)} is needed")
    message = Message(role=role, native=Native(format=FORMAT, json=native))
    content = _content(node)
    if role == ROLE_TOOL:
        result = ToolResultPart(
            call_id=node.required("tool_call_id"), name=node.text("name"), parts=content
        )
        message.parts.add(tool_result=result)
        return message
    message.name = node.text("name")
    if node.text("reasoning_content"):
        message.parts.add(reasoning=ReasoningPart(text=node.text("reasoning_content")))
    message.parts.extend(content)
    if node.text("refusal"):
        refusal = compact_json({"type": "refusal", "refusal": node.value["refusal"]})
        message.parts.add(opaque=OpaquePart(format=FORMAT, type="refusal", json=refusal))
    message.parts.extend(_call(call) for call in node.nodes("tool_calls"))
    return message


def _content(node: Node) -> list[Part]:
    content = node.value.get("content")
    if isinstance(content, str):
        return [Part(text=TextPart(text=storable(content)))]
    if content is not None and not isinstance(content, list):
        raise node.error("content", "a string or a list of parts is needed")
    return [_part(part) for part in node.nodes("content")]


def _part(node: Node) -> Part:
    kind = node.required("type")
    if kind == "text":
        return Part(
            text=TextPart(text=node.text("text")), provider_metadata_json=node.rest("type", "text")
        )
    image, file = node.node("image_url"), node.node("file")
    if kind == "image_url" and image is not None:
        mime_type, data = data_url(image.required("url"))
        part = ImagePart(mime_type=mime_type, detail=image.text("detail"))
        if data is None:
            part.uri = image.required("url")
        else:
            part.data = data
        return Part(image=part, provider_metadata_json=node.rest("type", "image_url"))
    if kind == "file" and file is not None:
        mime_type, data = data_url(file.text("file_data"))
        name = file.text("filename")
        where = FilePart(uri=file.text("file_id")) if data is None else FilePart(data=data)
        where.MergeFrom(FilePart(mime_type=mime_type, name=name))
        return Part(file=where, provider_metadata_json=node.rest("type", "file"))
    return Part(opaque=OpaquePart(format=FORMAT, type=kind, json=compact_json(node.value)))


def _call(node: Node) -> Part:
    """A tool call. A custom tool's input is text of any kind, and stands where arguments stand."""
    custom = node.node("custom")
    body = custom if custom is not None else node.node("function")
    if body is None:
        raise node.error("function", "an object is needed")
    arguments = body.value.get("arguments" if custom is None else "input")
    raw = (
        storable(arguments).encode()
        if isinstance(arguments, str)
        else compact_json(arguments or {})
    )
    known = ["id", "function"] + (
        ["type"] if node.value.get("type", "function") == "function" else []
    )
    call = ToolCallPart(call_id=node.required("id"), name=body.required("name"), arguments_json=raw)
    return Part(tool_call=call, provider_metadata_json=node.rest(*known, "custom"))


def _written(message: Message) -> Rows:
    """The results, or what came from OpenAI; and what else a message says."""
    if message.native.format == FORMAT:
        return [json.loads(message.native.json)], []
    results = [part.tool_result for part in message.parts if part.HasField("tool_result")]
    written = [_written_result(result) for result in results]
    others = [part for part in message.parts if not part.HasField("tool_result")]
    return written, [] if results and not others else [_written_message(message, others)]


def _written_result(result: ToolResultPart) -> dict[str, Any]:
    written: dict[str, Any] = {"role": "tool", "tool_call_id": result.call_id}
    if result.name:
        written["name"] = result.name
    return {**written, "content": _written_content(result.parts) or ""}


def _written_message(message: Message, parts: Sequence[Part]) -> dict[str, Any]:
    # Roles of a harness's own are a user's to the model.
    written: dict[str, Any] = {"role": _NAMES.get(message.role, "user")}
    if message.name:
        written["name"] = message.name
    content = _written_content(parts)
    written["content"] = content if content is not None or message.role == ROLE_ASSISTANT else ""
    for part in parts:
        if _is_refusal(part):
            written["refusal"] = json.loads(part.opaque.json)["refusal"]
    calls = [_written_call(part) for part in parts if part.HasField("tool_call")]
    return {**written, "tool_calls": calls} if calls else written


def _written_content(parts: Sequence[Part]) -> str | list[dict[str, Any]] | None:
    """One plain text as a string, anything else as a list. None: nothing."""
    pieces = [piece for piece in map(_written_part, parts) if piece is not None]
    if len(pieces) == 1 and pieces[0].keys() == {"type", "text"}:
        text: str = pieces[0]["text"]
        return text
    return pieces or None


def _written_part(part: Part) -> dict[str, Any] | None:
    more = json.loads(part.provider_metadata_json) if part.provider_metadata_json else {}
    match part.WhichOneof("kind"):
        case "text":
            return {"type": "text", "text": part.text.text, **more}
        case "image":
            image = {"url": _url(part.image)} | (
                {"detail": part.image.detail} if part.image.detail else {}
            )
            return {"type": "image_url", "image_url": image, **more}
        case "file":
            where = {"file_data": _url(part.file)} if part.file.data else {"file_id": part.file.uri}
            name = {"filename": part.file.name} if part.file.name else {}
            return {"type": "file", "file": {**name, **where}, **more}
        case "opaque" if part.opaque.format == FORMAT and not _is_refusal(part):
            item: dict[str, Any] = json.loads(part.opaque.json)
            return item
    return None


def _written_call(part: Part) -> dict[str, Any]:
    call = part.tool_call
    more = json.loads(part.provider_metadata_json) if part.provider_metadata_json else {}
    arguments = call.arguments_json.decode(errors="replace")
    if more.get("type") == "custom":
        return {"id": call.call_id, "custom": {"name": call.name, "input": arguments}, **more}
    return {
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
        **more,
    }


def _is_refusal(part: Part) -> bool:
    return part.opaque.format == FORMAT and part.opaque.type == "refusal"


def _url(source: ImagePart | FilePart) -> str:
    if source.WhichOneof("source") == "uri":
        return source.uri
    return f"data:{source.mime_type};base64,{base64.b64encode(source.data).decode()}"
