"""LangChain: messages as `messages_to_dict` writes them, from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ..messages import compact_json
from ..types import (
    ROLE_ASSISTANT,
    ROLE_CUSTOM,
    ROLE_DEVELOPER,
    ROLE_SYSTEM,
    ROLE_TOOL,
    ROLE_USER,
    ImagePart,
    Message,
    Native,
    OpaquePart,
    Part,
    ReasoningPart,
    Role,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from .common import arguments_of, beside, data_url, decoded, medium, text_part
from .node import Node, Source, load, storable

FORMAT = "langchain"
"""The name of the format in `Message.native`."""

_ROLES = {
    "human": ROLE_USER,
    "ai": ROLE_ASSISTANT,
    "tool": ROLE_TOOL,
    "system": ROLE_SYSTEM,
    "developer": ROLE_DEVELOPER,
    "user": ROLE_USER,
    "assistant": ROLE_ASSISTANT,
}
CALLS = ("tool_use", "tool_call", "function_call")
"""Blocks of a content that only say where one of the message's calls stands."""


def from_langchain(messages: Iterable[Source]) -> list[Message]:
    """Messages, each keeping its original in `native`, byte for byte where it is given as text.

    Taken in both forms: `{"type": …, "data": {…}}`, which LangChain's Python and JavaScript write,
    and the members of `data` alone. Ids are the messages'. Raises FormatError.
    """
    return [_message(*load(source)) for source in messages]


def _message(outer: Node, native: bytes) -> Message:
    node = outer.node("data") or outer
    kind = outer.text("type") or node.required("type")
    role, custom = _role(kind, node)
    message = Message(
        id=node.text("id"),
        role=role,
        custom_role=custom,
        native=Native(format=FORMAT, json=native),
    )
    if role == ROLE_TOOL:
        message.parts.append(_result(node))
        return message
    message.name = node.text("name")
    if role == ROLE_ASSISTANT:
        message.parts.extend(_reply(node))
        _told(message, node)
    else:
        message.parts.extend(_content(node, []))
    return message


def _role(kind: str, node: Node) -> tuple[Role, str]:
    """The role, and the name of one that is nobody else's."""
    kind = kind.removesuffix("MessageChunk").removesuffix("Message").lower()
    if kind == "chat":
        kind = node.required("role")
    more = node.node("additional_kwargs")
    if kind == "system" and more is not None and more.text("__openai_role__") == "developer":
        return ROLE_DEVELOPER, ""
    known = _ROLES.get(kind)
    return (ROLE_CUSTOM, kind) if known is None else (known, "")


def _reply(node: Node) -> list[Part]:
    """The parts of a reply. Its calls stand where its content says, else behind it."""
    calls = [_call(call) for call in node.nodes("tool_calls")]
    more = node.node("additional_kwargs")
    thought = "" if more is None else more.text("reasoning_content")
    parts = [Part(reasoning=ReasoningPart(text=thought))] if thought else []
    # LangChain writes an empty text where a model said nothing.
    parts += _content(node, calls) if node.value.get("content") != "" else []
    return [*parts, *calls, *map(_call, node.nodes("invalid_tool_calls"))]


def _call(node: Node) -> Part:
    call = ToolCallPart(call_id=node.text("id"), name=node.required("name"))
    call.arguments_json = arguments_of(node.value.get("args"))
    return Part(
        tool_call=call, provider_metadata_json=beside(node, "type", "id", "name", "args", "index")
    )


def _told(message: Message, node: Node) -> None:
    """What the provider said of a reply."""
    said = node.node("response_metadata") or Node({})
    message.model = said.text("model_name") or said.text("model")
    message.provider = said.text("model_provider")
    message.stop_reason = said.text("finish_reason") or said.text("stop_reason")
    usage = node.node("usage_metadata")
    if usage is None:
        return
    read = usage.node("input_token_details") or Node({})
    made = usage.node("output_token_details") or Node({})
    cached, written = read.number("cache_read"), read.number("cache_creation")
    # LangChain's input is all of it.
    fresh = (usage.number("input_tokens") or 0) - (cached or 0) - (written or 0)
    message.usage.CopyFrom(
        Usage(
            input_tokens=max(fresh, 0),
            output_tokens=usage.number("output_tokens"),
            cache_read_tokens=cached,
            cache_write_tokens=written,
            reasoning_tokens=made.number("reasoning"),
            total_tokens=usage.number("total_tokens"),
        )
    )


def _result(node: Node) -> Part:
    artifact = node.value.get("artifact")
    result = ToolResultPart(
        call_id=node.required("tool_call_id"),
        name=node.text("name"),
        parts=_content(node, []),
        is_error=node.text("status") == "error",
        details_json=b"" if artifact is None else compact_json(artifact),
    )
    return Part(tool_result=result)


def _content(node: Node, calls: list[Part]) -> list[Part]:
    """The parts of a content. Calls that stand in it are taken out of `calls`."""
    content = node.value.get("content")
    if isinstance(content, str):
        return [text_part(content)]
    if content is None:
        return []
    if not isinstance(content, list):
        raise node.error("content", "a string or a list of blocks is needed")
    parts: list[Part] = []
    for at, block in enumerate(content):
        if isinstance(block, str):
            parts.append(text_part(block))
        elif isinstance(block, Mapping):
            parts += _block(Node(block, f"{node.at('content')}[{at}]"), calls)
        else:
            raise node.error("content", "a list of texts and blocks is needed")
    return parts


def _block(node: Node, calls: list[Part]) -> list[Part]:
    kind = node.required("type")
    match kind:
        case "text":
            return [text_part(node.text("text"), beside(node, "type", "text"))]
        case "thinking" | "reasoning" | "redacted_thinking":
            return [_thought(node, kind)]
        case "image_url":
            return [_image_url(node)]
        case "image" | "file":
            made = _medium(node, kind)
            return [_opaque(node) if made is None else made]
        case _ if kind in CALLS:
            name = node.text("call_id") or node.text("id")
            same = [at for at, one in enumerate(calls) if one.tool_call.call_id == name]
            if not same:
                return [_opaque(node)]
            part = calls.pop(same[0])
            more = json.loads(part.provider_metadata_json or b"{}") | {"block": kind}
            part.provider_metadata_json = compact_json(more)
            return [part]
    return [_opaque(node)]


def _opaque(node: Node) -> Part:
    kind = node.required("type")
    return Part(opaque=OpaquePart(format=FORMAT, type=kind, json=compact_json(node.value)))


def _thought(node: Node, kind: str) -> Part:
    """Reasoning, as Anthropic, OpenAI or LangChain's own blocks say it."""
    extras = node.node("extras") or Node({})
    texts = [one.text("text") for one in node.nodes("summary")]
    thought = ReasoningPart(
        text=node.text("thinking") or node.text("reasoning") or "\n\n".join(texts),
        signature=(node.text("signature") or extras.text("signature")).encode(),
        redacted_data=(node.text("data") or node.text("encrypted_content")).encode(),
    )
    if kind == "reasoning":
        thought.item_id = node.text("id")
    known = ("type", "thinking", "reasoning", "signature", "data", "encrypted_content", "id")
    rest = beside(node, *known, *(["summary"] if len(texts) < 2 else []))
    return Part(reasoning=thought, provider_metadata_json=rest)


def _image_url(node: Node) -> Part:
    given = node.value.get("image_url")
    inner = Node({"url": given}) if isinstance(given, str) else node.node("image_url")
    if inner is None:
        raise node.error("image_url", "an object or an address is needed")
    mime_type, data = data_url(inner.required("url"))
    where: dict[str, Any] = {"uri": storable(inner.text("url"))} if data is None else {"data": data}
    image = ImagePart(mime_type=mime_type, detail=inner.text("detail"), **where)
    return Part(image=image, provider_metadata_json=beside(node, "image_url"))


def _medium(node: Node, kind: str) -> Part | None:
    """A picture or file by its bytes or its address. None: in another way."""
    mime_type = node.text("mime_type")
    if node.text("base64"):
        part = medium(decoded(node, "base64"), "", "image/" if kind == "image" else mime_type)
    elif node.text("url"):
        part = medium(None, node.text("url"), "image/" if kind == "image" else mime_type)
    else:
        return None
    if part.HasField("image"):
        part.image.mime_type = mime_type
    else:
        part.file.mime_type, part.file.name = mime_type, node.text("filename")
    part.provider_metadata_json = beside(node, "base64", "url", "mime_type", "filename")
    return part
