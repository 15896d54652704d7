"""Layers and facts of messages in the form of OpenAI's chat API, for those who have such a list and
no session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from contextengine_server.memory.extraction.extract import facts_in
from contextengine_server.memory.extraction.fact import FactKind

from ..contract import Said
from ..rewrite import text_of
from .classification import layer_of, layer_of_step
from .layers import Layer

Chat = dict[str, Any]
"""A message: `role`, `content`, `tool_calls`. Calls may stand without the wrapper `function`."""

_FIRST = (FactKind.EMAIL, FactKind.PREFERENCE, FactKind.DECISION)
"""The kinds that PyClaw knows, in its order."""


def said_in(message: Chat) -> Said:
    """A message as the rules read it."""
    role, content, text = str(message.get("role", "")), message.get("content"), text_of(message)
    parts = content if isinstance(content, list) else []
    answers = role in ("tool", "function")
    return Said(
        "tool" if answers else role,
        text,
        calls=len(message.get("tool_calls") or ()),
        results=int(answers),
        silent=int(answers and not text.strip()),
        other=any(isinstance(one, Mapping) and one.get("type") != "text" for one in parts),
    )


def layer_of_chat(message: Chat) -> Layer:
    """The layer of one message by itself."""
    return layer_of(said_in(message))


def steps_of(messages: Sequence[Chat]) -> Iterator[tuple[int, int, Layer]]:
    """(First, behind the last, layer) of each step: a message, with the results that follow it."""
    first = 0
    while first < len(messages):
        end = first + 1
        while end < len(messages) and said_in(messages[end]).results:
            end += 1
        yield first, end, layer_of_step(map(said_in, messages[first:end]))
        first = end


def fact_lines(messages: Sequence[Chat]) -> list[str]:
    """The facts that messages state, each once: addresses of mail, preferences, decisions, then
    others, in the order in which they were said."""
    found = [
        fact
        for message in messages
        for fact in facts_in(said_in(message).role, said_in(message).text)
    ]
    kinds = (*_FIRST, *(kind for kind in FactKind if kind not in _FIRST))
    return list(dict.fromkeys(fact.line for kind in kinds for fact in found if fact.kind is kind))
