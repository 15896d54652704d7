"""The rules of `messages` of OpenAI Chat Completions. Sources in brackets; `local`: read in the
openai SDK 3.54."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ..rules import Breach, RuleFinding, mapping, numbered, objects, run

ROLES = ("developer", "system", "user", "assistant", "tool", "function")
PARTS = {
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
    "system": ("text",),
    "developer": ("text",),
    "tool": ("text",),
}
MAX_ID = 64

MessageList = list[Any]


def validate(body: Any, model: str = "") -> list[RuleFinding]:
    """The findings on a list of messages, or on a request that holds it under `messages`. No rule
    depends on `model`."""
    messages = body.get("messages") if isinstance(body, Mapping) else body
    if not isinstance(messages, list):
        return [RuleFinding("C1", "messages", "is not a list")]
    return run((c1, c2, c3, c4, c5, c6, c7, c8, c9), messages, frozenset({"c8"}))


def c1(messages: MessageList) -> Iterator[Breach]:
    """There are messages, and each is an object whose role is developer, system, user, assistant,
    tool or function [local: others are rejected]."""
    if not messages:
        yield "messages", "is empty"
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping) or message.get("role") not in ROLES:
            yield f"messages[{index}].role", f"must be one of {', '.join(ROLES)}"


def c2(messages: MessageList) -> Iterator[Breach]:
    """`content` is required; an assistant's may be null or absent with tool calls, or a refusal,
    only [local doc string]."""
    for path, message in numbered(messages, "messages"):
        content = message.get("content")
        spoken = message.get("tool_calls") or message.get("refusal") or message.get("function_call")
        if content is None and not (message.get("role") == "assistant" and spoken):
            yield f"{path}.content", "is required"
        elif isinstance(content, list) and not content:
            yield f"{path}.content", "is an empty list"


def c3(messages: MessageList) -> Iterator[Breach]:
    """A tool call has an id of at most 64 characters, unique in the list, type `function` and a
    function with a name and its arguments as text (or type `custom`) [local, once lazily validated
    lists are walked; id length: decolua/9router#3167, pydantic-ai#4389]."""
    seen: set[str] = set()
    for path, message in numbered(messages, "messages"):
        calls = message.get("tool_calls")
        if calls is None:
            continue
        if message.get("role") != "assistant" or not isinstance(calls, list) or not calls:
            yield (
                f"{path}.tool_calls",
                "belongs to an assistant's message, and is a list that is not empty",
            )
        for where, call in numbered(calls, f"{path}.tool_calls"):
            name = call.get("id")
            if not isinstance(name, str) or not 0 < len(name) <= MAX_ID:
                yield f"{where}.id", f"must be a string of 1 to {MAX_ID} characters"
            elif name in seen:
                yield f"{where}.id", "was used before"
            else:
                seen.add(name)
            kind = call.get("type")
            inner, key = ("custom", "input") if kind == "custom" else ("function", "arguments")
            made = mapping(call.get(inner))
            if (
                kind not in ("function", "custom")
                or not made.get("name")
                or not isinstance(made.get(key), str)
            ):
                yield where, "needs a type, a name, and its arguments as text"


def c4(messages: MessageList) -> Iterator[Breach]:
    """Tool messages that answer every id follow an assistant's calls at once, before any other role
    [QwenLM/qwen-code#315]."""
    all_messages = objects(messages)
    for index, message in enumerate(all_messages):
        wanted = {call.get("id") for call in objects(message.get("tool_calls"))}
        answered = set()
        for follower in all_messages[index + 1 :]:
            if follower.get("role") != "tool":
                break
            answered.add(follower.get("tool_call_id"))
        for missing in sorted(str(name) for name in wanted - answered):
            yield (
                f"messages[{index}].tool_calls",
                f"{missing} is not answered by the tool messages behind it",
            )


def c5(messages: MessageList) -> Iterator[Breach]:
    """A tool message answers, once, a call of the assistant's message before it
    [miurla/morphic#136, llama_index#10493, camel#3339]."""
    open_ids: list[Any] = []
    for path, message in numbered(messages, "messages"):
        if message.get("role") != "tool":
            open_ids = [call.get("id") for call in objects(message.get("tool_calls"))]
        elif message.get("tool_call_id") in open_ids:
            open_ids.remove(message["tool_call_id"])
        else:
            yield f"{path}.tool_call_id", "names no open call of the assistant's message before it"


def c6(messages: MessageList) -> Iterator[Breach]:
    """A tool message's content is text or parts of text [local]."""
    for path, message in numbered(messages, "messages"):
        content = message.get("content")
        texts = isinstance(content, list) and all(
            part.get("type") == "text" for part in objects(content)
        )
        if message.get("role") == "tool" and not isinstance(content, str) and not texts:
            yield f"{path}.content", "may hold text only"


def c7(messages: MessageList) -> Iterator[Breach]:
    """User parts are text, image_url, input_audio and file; an assistant's text and refusal;
    others' text. `input_text` is of the Responses API [local: rejected]."""
    for path, message in numbered(messages, "messages"):
        role = str(message.get("role"))
        content = message.get("content")
        if content is not None and not isinstance(content, str | list):
            yield f"{path}.content", "is neither text nor a list of parts"
        for where, part in numbered(content, f"{path}.content"):
            kind = part.get("type")
            if kind not in PARTS.get(role, PARTS["user"]):
                yield f"{where}.type", f"{kind!r} has no place in a message of {role}"
            elif kind == "text" and not isinstance(part.get("text"), str):
                yield f"{where}.text", "is not a string"
            elif kind == "image_url" and not mapping(part.get("image_url")).get("url"):
                yield f"{where}.image_url", "needs a url"


def c8(messages: MessageList) -> Iterator[Breach]:
    """Arguments should be JSON; what a model wrote wrongly is kept as it is rather than mended in
    silence [inference]: advice."""
    for path, message in numbered(messages, "messages"):
        for where, call in numbered(message.get("tool_calls"), f"{path}.tool_calls"):
            arguments = mapping(call.get("function")).get("arguments")
            if isinstance(arguments, str):
                try:
                    json.loads(arguments)
                except (ValueError, RecursionError):
                    yield f"{where}.function.arguments", "is not JSON"


def c9(messages: MessageList) -> Iterator[Breach]:
    """History is not cut between a call and its results: it begins with no tool message and ends
    with no open call [itmisx/deepx-code#94]."""
    all_messages = objects(messages)
    spoken = [
        message for message in all_messages if message.get("role") not in ("system", "developer")
    ]
    if spoken and spoken[0].get("role") == "tool":
        yield "messages", "the history begins with a tool's result: its call was cut off"
    if all_messages and all_messages[-1].get("tool_calls"):
        yield (
            f"messages[{len(all_messages) - 1}]",
            "the history ends with calls: their results were cut off",
        )
