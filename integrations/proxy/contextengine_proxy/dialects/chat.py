"""OpenAI Chat Completions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from contextengine.formats import from_openai, to_openai
from contextengine.formats.common import has_results
from contextengine.formats.node import Source
from contextengine.types import (
    ROLE_ASSISTANT,
    ROLE_DEVELOPER,
    ROLE_SYSTEM,
    ROLE_TOOL,
    Message,
    Usage,
)

from ..document import Document
from .dialect import (
    OPENER,
    Dialect,
    Entry,
    Json,
    Reply,
    StreamReader,
    Texts,
    count,
    joined,
)

_OTHERS = frozenset((ROLE_ASSISTANT, ROLE_TOOL, ROLE_SYSTEM, ROLE_DEVELOPER))
"""Roles that are not the user's in what is sent."""


class Chat(Dialect):
    """Chat Completions: the conversation is `messages`, instructions lead it."""

    path = "/chat/completions"
    listed = "messages"
    provider = ""
    outside = ("tools", "functions", "response_format")
    reserves = ("max_completion_tokens", "max_tokens")

    def read(self, originals: Sequence[Source]) -> list[Message]:
        return from_openai(originals)

    def write(self, message: Message) -> list[Json]:
        return to_openai([message])

    def arranged(self, entries: Sequence[Entry]) -> list[str]:
        """Begins with the user where its beginning was left out, and what we made shares a message
        with the user's beside it: the templates of many models (Mistral's, Gemma's) want user and
        model by turns."""
        users = ["user" if _of_user(entry.message) else "" for entry in entries]
        written = joined(entries, users, _one_of)
        if entries and entries[0].message.role == ROLE_ASSISTANT and not entries[0].opens:
            written.insert(0, json.dumps({"role": "user", "content": OPENER}))
        return written

    def instructed(self, document: Document, text: str, leading: list[str]) -> dict[str, object]:
        """Many servers take one message of instructions alone, as the templates of their models say
        (Qwen's, Gemma's): none is added to those that are there."""
        if not leading:
            leading.append(json.dumps({"role": "system", "content": text}))
            return {}
        last = document.instructions[-1]
        given = last.get("content")
        if isinstance(given, list):
            content: object = [*given, {"type": "text", "text": text}]
        else:
            content = f"{given}\n\n{text}" if given else text
        leading[-1] = json.dumps({**last, "content": content})
        return {}

    def whole(self, body: Mapping[str, Any]) -> Reply | None:
        if len(body["choices"]) != 1:
            return None  # which of them the client goes on with is known with its next request
        [choice] = body["choices"]
        return _reply(choice["message"], body, choice.get("finish_reason"))

    def reader(self) -> StreamReader:
        return ChatReader()

    def error(self, status: int, text: str) -> Json:
        return openai_error(status, text)


class ChatReader(StreamReader):
    """Chunks of one choice."""

    def __init__(self) -> None:
        self._texts: dict[str, Texts] = {}
        self._calls: dict[int, Json] = {}
        self._usage: Json = {}
        self._stop = ""
        self._several = False

    def take(self, event: Mapping[str, Any]) -> None:
        if event.get("usage"):
            self._usage = dict(event)
        for choice in event.get("choices") or ():
            self._several |= choice.get("index", 0) != 0
            self._stop = choice.get("finish_reason") or self._stop
            delta = choice.get("delta") or {}
            for name in ("content", "refusal", "reasoning_content"):
                if delta.get(name):
                    self._texts.setdefault(name, Texts()).add(delta[name])
            for call in delta.get("tool_calls") or ():
                self._call(call)

    def _call(self, piece: Mapping[str, Any]) -> None:
        kind = "custom" if piece.get("custom") or piece.get("type") == "custom" else "function"
        at = piece.get("index", len(self._calls))
        call = self._calls.setdefault(at, {"id": "", "type": kind, kind: {"name": ""}})
        call["id"] = call["id"] or piece.get("id") or ""
        body = piece.get(kind) or {}
        call[kind]["name"] += body.get("name") or ""
        given = "arguments" if kind == "function" else "input"
        call[kind].setdefault(given, Texts()).add(body.get(given))

    def reply(self) -> Reply | None:
        if not self._stop or self._several:
            return None
        message: Json = {"role": "assistant", "content": None}
        message |= {name: str(text) for name, text in self._texts.items()}
        calls = [
            {
                name: {key: str(value) for key, value in value.items()}
                if isinstance(value, dict)
                else value
                for name, value in call.items()
            }
            for _, call in sorted(self._calls.items())
        ]
        return _reply(message | ({"tool_calls": calls} if calls else {}), self._usage, self._stop)


def _of_user(message: Message) -> bool:
    """Whether it is the user's, and nobody's by name."""
    return not (message.role in _OTHERS or message.name or has_results(message))


def _one_of(messages: list[Json]) -> Json:
    contents = [one["content"] for one in messages if one.get("content")]
    if all(isinstance(one, str) for one in contents):
        content: object = "\n\n".join(contents)
    else:
        content = [part for one in contents for part in _parts(one)]
    return {name: value for one in messages for name, value in one.items()} | {"content": content}


def _parts(content: str | list[Json]) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def openai_error(status: int, text: str) -> Json:
    """An error as OpenAI says it."""
    kind = "invalid_request_error" if status < 500 else "api_error"
    return {"error": {"message": text, "type": kind, "param": None, "code": None}}


def _reply(message: Json, body: Mapping[str, Any], stop: object) -> Reply:
    usage = body.get("usage")
    return Reply(
        from_openai([message]),
        _usage(usage) if isinstance(usage, Mapping) else None,
        str(stop or ""),
    )


def _usage(usage: Mapping[str, Any]) -> Usage:
    cached = count(usage, "prompt_tokens_details", "cached_tokens")
    prompt = count(usage, "prompt_tokens")
    return Usage(
        input_tokens=None if prompt is None else prompt - (cached or 0),
        output_tokens=count(usage, "completion_tokens"),
        cache_read_tokens=cached,
        reasoning_tokens=count(usage, "completion_tokens_details", "reasoning_tokens"),
        total_tokens=count(usage, "total_tokens"),
    )


DIALECT = Chat()
