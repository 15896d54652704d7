"""Gemini: the `contents` and `systemInstruction` of a request, to."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

from ..types import (
    ROLE_ASSISTANT,
    ROLE_DEVELOPER,
    ROLE_SYSTEM,
    FilePart,
    ImagePart,
    Message,
    Part,
    ToolCallPart,
    ToolResultPart,
)
from .common import has_results
from .gemini import FORMAT, INVENTED

Json = dict[str, Any]


def to_gemini(messages: Iterable[Message]) -> Json:
    """`contents`, and `systemInstruction` where leading messages instruct.

    What came from Gemini comes back as it was. Later instructions become a user's text; what the
    format cannot say (other vendors' reasoning and items) is left out, and a message of nothing
    else with it. Results that follow each other share a content, since Gemini refuses fewer in the
    content behind calls than were called; those that came from Gemini apart stay so.
    """
    system: list[Json] = []
    contents: list[Json] = []
    names: dict[str, str] = {}
    answers, made = False, True
    for message in messages:
        instructs = message.role in (ROLE_SYSTEM, ROLE_DEVELOPER)
        names |= {part.tool_call.call_id: part.tool_call.name for part in message.parts}
        content = _content(message, names)
        if not content["parts"]:
            continue
        before, answers = answers, has_results(message)
        own, made = made, message.native.format != FORMAT
        if instructs and not contents:
            system += content["parts"]
        elif before and answers and (own or made):
            both = [*contents[-1]["parts"], *content["parts"]]
            contents[-1] = {**contents[-1], "parts": sorted(both, key=behind_results)}
            made = True
        else:
            contents.append(content)
    return ({"systemInstruction": {"parts": system}} if system else {}) | {"contents": contents}


def behind_results(part: Json) -> bool:
    """Whether a part stands behind the results in its content."""
    return "functionResponse" not in part and "function_response" not in part


def _content(message: Message, names: dict[str, str]) -> Json:
    """One content. `names`: of the tools that calls so far named, by the ids of the calls."""
    native = json.loads(message.native.json) if message.native.format == FORMAT else None
    if isinstance(native, dict):  # a list is the contents that a reply came in
        return native
    role = "model" if message.role == ROLE_ASSISTANT else "user"
    parts = [_part(part, names) for part in message.parts]
    return {"role": role, "parts": [part for part in parts if part is not None]}


def _part(part: Part, names: dict[str, str]) -> Json | None:
    written: Json | None = None
    match part.WhichOneof("kind"):
        case "text" if part.text.text:
            written = {"text": part.text.text}
        case "tool_call":
            written = {"functionCall": _call(part.tool_call)}
        case "tool_result":
            written = {"functionResponse": _response(part, part.tool_result, names)}
        case "image":
            written = _medium(part.image)
        case "file":
            written = _medium(part.file)
        case "opaque" if part.opaque.format == FORMAT:
            written = dict(json.loads(part.opaque.json))
    if written is not None and part.thought_signature:
        written["thoughtSignature"] = base64.b64encode(part.thought_signature).decode()
    return written


def _call(call: ToolCallPart) -> Json:
    try:
        given = json.loads(call.arguments_json or b"{}")
    except ValueError:
        given = call.arguments_json.decode(errors="replace")
    arguments = given if isinstance(given, dict) else {"arguments": given}
    return {**_named(call.call_id), "name": call.name, "args": arguments}


def _response(part: Part, result: ToolResultPart, names: dict[str, str]) -> Json:
    texts = [one.text.text for one in result.parts if one.HasField("text")]
    free = part.provider_metadata_json == b'{"response":"object"}' and len(texts) == 1
    response = _whole(texts[0]) if free else None
    if response is None:
        response = {"error" if result.is_error else "output": "\n".join(texts)}
    name = result.name or names.get(result.call_id, "unknown")
    return {**_named(result.call_id), "name": name, "response": response}


def _whole(text: str) -> Json | None:
    """The object that a tool answered. None: it is shown in part, or something in its place."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _named(call_id: str) -> Json:
    """The id of a call, but for one that was made up on the way in."""
    return {} if not call_id or call_id.startswith(INVENTED) else {"id": call_id}


def _medium(source: ImagePart | FilePart) -> Json:
    if source.WhichOneof("source") == "uri":
        return {"fileData": {"mimeType": source.mime_type, "fileUri": source.uri}}
    data = base64.b64encode(source.data).decode()
    return {"inlineData": {"mimeType": source.mime_type, "data": data}}
