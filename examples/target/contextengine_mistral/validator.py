"""The rules of `messages` of Mistral's chat, as mistral-common checks them
(mistral_common/protocol/instruct/validator.py). Knows nothing of the renderer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from contextengine_server.projection.rules import Breach, RuleFinding, numbered, objects, run

BEHIND = {
    "": ("system", "user", "assistant"),
    "system": ("system", "user", "assistant"),
    "user": ("system", "user", "assistant"),
    "assistant": ("assistant", "user", "tool"),
    "tool": ("assistant", "tool"),
}
"""Which roles may follow a role; the empty one is before the list."""
_ID = re.compile(r"[a-zA-Z0-9]{9}")

MessageList = list[Any]


def validate(body: Any, model: str = "") -> list[RuleFinding]:
    """The findings on a list of messages, or on a request that holds it. No rule depends on
    `model`."""
    messages = body.get("messages") if isinstance(body, Mapping) else body
    if not isinstance(messages, list):
        return [RuleFinding("M1", "messages", "is not a list")]
    return run((m1, m2, m3, m4, m6_prefill), messages, frozenset({"m6_prefill"}))


def m1(messages: MessageList) -> Iterator[Breach]:
    """There are messages, each an object of a role that the form knows."""
    if not messages:
        yield "messages", "is empty"
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping) or message.get("role") not in BEHIND:
            yield f"messages[{index}].role", f"must be one of {', '.join(filter(None, BEHIND))}"


def m2(messages: MessageList) -> Iterator[Breach]:
    """Roles follow one another as they may: no user's message behind results, say."""
    before = ""
    for path, message in numbered(messages, "messages"):
        role = str(message.get("role"))
        if role not in BEHIND.get(before, BEHIND[""]):
            yield f"{path}.role", f"{role} may not stand behind {before or 'nothing'}"
        before = role


def m3(messages: MessageList) -> Iterator[Breach]:
    """A call has an id of nine letters and digits, used once; the results right behind the calls
    of a message answer each of them once."""
    seen: set[Any] = set()
    waiting: list[Any] = []
    for path, message in numbered([*messages, {"role": "end"}], "messages"):
        if message.get("role") == "tool":
            if message.get("tool_call_id") not in waiting:
                yield f"{path}.tool_call_id", "answers no call of the message before"
            else:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            yield path, f"stands where results of {waiting} should"
        waiting = [call.get("id") for call in objects(message.get("tool_calls"))]
        for name in waiting:
            if not isinstance(name, str) or not _ID.fullmatch(name):
                yield f"{path}.tool_calls", f"the id {name!r} is not of nine letters and digits"
            elif name in seen:
                yield f"{path}.tool_calls", f"the id {name!r} was used before"
            seen.add(name)


def m4(messages: MessageList) -> Iterator[Breach]:
    """A message has a text, but for the model's with calls, which has none."""
    for path, message in numbered(messages, "messages"):
        content = message.get("content")
        if message.get("role") == "assistant" and bool(content) == bool(message.get("tool_calls")):
            yield path, "needs a text or calls, and not both"
        elif content is not None and not isinstance(content, str):
            yield f"{path}.content", "is not a string"
        elif content is None and not message.get("tool_calls"):
            yield f"{path}.content", "is required"


def m6_prefill(messages: MessageList) -> Iterator[Breach]:
    """A message of the model at the end has to be marked as the beginning of the answer."""
    if messages and objects(messages)[-1].get("role") == "assistant":
        yield f"messages[{len(messages) - 1}]", "is the model's, and not marked as a prefix"
