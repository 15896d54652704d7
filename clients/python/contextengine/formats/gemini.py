"""Gemini: the `contents` and the `systemInstruction` of a request, from. Field names in either
spelling."""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

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
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from .common import decoded
from .node import Node, Source, load

FORMAT = "gemini.content"
"""The name of the format in `Message.native`."""

INVENTED = "gemini-"
"""Calls that come without an id get one that begins so, from what they say: a list that was cut
names them as the whole one did."""

_STAND_IN = "skip_thought_signature_validator"


def from_gemini(contents: Iterable[Source], system: Source | None = None) -> list[Message]:
    """Messages, each keeping its original in `native`, byte for byte where it is given as text.

    `system`: the content of `systemInstruction`, which becomes a leading system message. A content
    of function responses alone is a tool message; its results get the ids of the calls before it.
    They have no ids: see `with_ids`. Raises FormatError.
    """
    head = [] if system is None else [_system(*load(system))]
    messages: list[Message] = []
    step = _Step()
    for source in contents:
        messages.append(_message(*load(source), step))
    return head + messages


class _Step:
    """The model's contents in a row, and what stands behind them before it speaks again."""

    def __init__(self) -> None:
        self.names = Counter[str]()
        """Ids that were made up, and how often."""
        self.waiting: list[ToolCallPart] = []
        """Calls without a result."""
        self.spoken = False
        """Whether the newest content is the model's."""

    def speaks(self, model: bool) -> None:
        """Begins another content, and another step where the model speaks anew."""
        if model and not self.spoken:
            self.names.clear()
            self.waiting.clear()
        self.spoken = model


def _system(node: Node, native: bytes) -> Message:
    parts = [Part(text=TextPart(text=part.text("text"))) for part in node.nodes("parts")]
    return Message(role=ROLE_SYSTEM, parts=parts, native=Native(format=FORMAT, json=native))


def _message(node: Node, native: bytes, step: _Step) -> Message:
    role = node.text("role") or "user"
    if role not in ("user", "model"):
        raise node.error("role", "user or model is needed")
    step.speaks(role == "model")
    parts = [_part(_snake(part), step) for part in node.nodes("parts")]
    message = Message(parts=parts, native=Native(format=FORMAT, json=native))
    if role == "model":
        message.role = ROLE_ASSISTANT
        message.api = "google-generative-ai"
    else:
        results = bool(parts) and all(part.HasField("tool_result") for part in parts)
        message.role = ROLE_TOOL if results else ROLE_USER
    return message


def _part(node: Node, step: _Step) -> Part:
    part = _content(node, step)
    signature = node.text("thought_signature")
    if signature:
        part.thought_signature = _signature(node, signature)
    return part


def _content(node: Node, step: _Step) -> Part:
    call, answer = node.node("function_call"), node.node("function_response")
    inline, file = node.node("inline_data"), node.node("file_data")
    if call is not None:
        made = ToolCallPart(call_id=call.text("id"), name=call.required("name"))
        made.arguments_json = compact_json(call.value.get("args") or {})
        made.call_id = made.call_id or _invented(step.names, made.name, made.arguments_json)
        step.waiting.append(made)
        return Part(tool_call=made)
    if answer is not None:
        return _answer(answer, step)
    if inline is not None:
        mime = inline.text("mime_type")
        data = decoded(inline, "data")
        if mime.startswith("image/"):
            return Part(image=ImagePart(data=data, mime_type=mime))
        return Part(file=FilePart(data=data, mime_type=mime))
    if file is not None:
        mime, uri = file.text("mime_type"), file.required("file_uri")
        if mime.startswith("image/"):
            return Part(image=ImagePart(uri=uri, mime_type=mime))
        return Part(file=FilePart(uri=uri, mime_type=mime))
    if "text" in node.value:
        text = node.text("text")
        if node.value.get("thought") is True:
            return Part(reasoning=ReasoningPart(text=text))
        return Part(text=TextPart(text=text))
    kind = next((key for key in node.value if key != "thought_signature"), "")
    return Part(opaque=OpaquePart(format=FORMAT, type=kind, json=compact_json(node.value)))


def _answer(node: Node, step: _Step) -> Part:
    """A result, with the id of the first open call of its name where it has none itself."""
    name, given = node.required("name"), node.text("id")
    same = [call for call in step.waiting if call.name == name and given in ("", call.call_id)]
    if same:
        step.waiting.remove(same[0])
    response = node.value.get("response")
    if not isinstance(response, Mapping):
        raise node.error("response", "an object is needed")
    call_id = given or (same[0].call_id if same else _invented(step.names, name))
    result = ToolResultPart(call_id=call_id, name=name)
    said = next(iter(response.values())) if len(response) == 1 else None
    if isinstance(said, str) and next(iter(response)) in ("output", "error"):
        result.parts.add(text=TextPart(text=said))
        result.is_error = "error" in response
        return Part(tool_result=result)
    result.parts.add(text=TextPart(text=compact_json(response).decode()))
    return Part(tool_result=result, provider_metadata_json=b'{"response":"object"}')


def _invented(names: Counter[str], *said: str | bytes) -> str:
    """An id for what a call says, another for each that says the same."""
    told = b"\0".join(one.encode() if isinstance(one, str) else one for one in said)
    name = f"{INVENTED}{sha256(told).hexdigest()[:12]}"
    names[name] += 1
    return name if names[name] == 1 else f"{name}-{names[name]}"


def _signature(node: Node, text: str) -> bytes:
    if text == _STAND_IN:
        return text.encode()
    try:
        return base64.b64decode(text.translate({ord("-"): "+", ord("_"): "/"}), validate=True)
    except binascii.Error:
        raise node.error("thought_signature", "base64 is needed") from None


def _snake(node: Node) -> Node:
    """The part with the API's own names in snake_case; what a tool's arguments and results hold
    stays."""
    return Node(_renamed(node.value), node.path)


def _renamed(value: Mapping[str, Any]) -> dict[str, Any]:
    renamed: dict[str, Any] = {}
    for key, inner in value.items():
        name = re.sub(r"(?<=[a-z])([A-Z])", lambda found: "_" + found[1].lower(), key)
        free = name in ("args", "response")
        renamed[name] = _renamed(inner) if isinstance(inner, Mapping) and not free else inner
    return renamed
