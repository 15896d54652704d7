"""Anthropic Messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from contextengine.formats import from_anthropic, to_anthropic
from contextengine.formats.node import Source
from contextengine.formats.to_anthropic import behind_results, instructs_between
from contextengine.types import (
    ROLE_ASSISTANT,
    ROLE_DEVELOPER,
    ROLE_SYSTEM,
    Message,
    Usage,
)

from ..document import Document
from .dialect import OPENER, Dialect, Entry, Json, Reply, StreamReader, Texts, count, joined

_ROLES = {ROLE_ASSISTANT: "assistant", ROLE_SYSTEM: "system", ROLE_DEVELOPER: "system"}
"""The role of an element; the others' is `user`, results of tools among them."""
_PIECES = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""The kinds of pieces that a block comes in, and the member that holds each."""


class Anthropic(Dialect):
    """Messages: the conversation is `messages`, instructions stand in `system`."""

    path = "/messages"
    listed = "messages"
    provider = "anthropic"
    outside = ("system", "tools")
    reserves = ("max_tokens",)

    def read(self, originals: Sequence[Source]) -> list[Message]:
        return from_anthropic(originals)

    def instructs(self, message: Mapping[str, Any]) -> bool:
        return False  # they stand in `system`

    def write(self, message: Message) -> list[Json]:
        written: list[Json] = to_anthropic([message])["messages"]
        return written

    def arranged(self, entries: Sequence[Entry]) -> list[str]:
        """Begins with the user. What we made stands in one message with its neighbours of the same
        role. A `system` message among them that lost the neighbours that the API wants is the
        user's."""
        placed = list(_placed(entries))
        roles = [role for _, role in placed if role != "system"]
        kinds = ["" if role == "system" else role for _, role in placed]
        written = joined([entry for entry, _ in placed], kinds, _one_of)
        if roles[:1] == ["assistant"]:  # but for what only sets how the model works
            written.insert(0, json.dumps({"role": "user", "content": OPENER}))
        return written

    def instructed(self, document: Document, text: str, leading: list[str]) -> dict[str, object]:
        given = document.value.get("system")
        if isinstance(given, list):
            return {"system": [*given, {"type": "text", "text": text}]}
        return {"system": f"{given}\n\n{text}" if given else text}

    def whole(self, body: Mapping[str, Any]) -> Reply | None:
        if body.get("type") != "message":
            return None
        message = {"role": "assistant", "content": body["content"]}
        usage = body.get("usage")
        return Reply(
            from_anthropic([message]) if body["content"] else [],
            _usage(usage) if isinstance(usage, Mapping) else None,
            str(body.get("stop_reason") or ""),
        )

    def reader(self) -> StreamReader:
        return AnthropicReader()

    def error(self, status: int, text: str) -> Json:
        kinds = {400: "invalid_request_error", 413: "request_too_large", 504: "timeout_error"}
        return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": text}}


class AnthropicReader(StreamReader):
    """Blocks, each in pieces."""

    def __init__(self) -> None:
        self._message: Json = {}
        self._usage: Json = {}
        self._blocks: dict[int, Json] = {}
        self._pieces: dict[tuple[int, str], Texts] = {}
        self._stopped = False

    def take(self, event: Mapping[str, Any]) -> None:
        match event.get("type"):
            case "message_start":
                self._message = dict(event["message"])
                self._usage = dict(self._message.get("usage") or {})
            case "content_block_start":
                self._blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                delta = event["delta"]
                member = _PIECES.get(delta["type"])
                if member is not None:
                    key = (event["index"], member)
                    self._pieces.setdefault(key, Texts()).add(delta.get(member))
                elif delta["type"] == "citations_delta":
                    self._blocks[event["index"]].setdefault("citations", []).append(
                        delta["citation"]
                    )
            case "message_delta":
                self._message |= event.get("delta") or {}
                told = event.get("usage") or {}
                self._usage |= {name: value for name, value in told.items() if value is not None}
            case "message_stop":
                self._stopped = True

    def reply(self) -> Reply | None:
        if not self._stopped:
            return None
        for (index, member), pieces in self._pieces.items():
            block = self._blocks[index]
            if member == "partial_json":
                block["input"] = json.loads(str(pieces) or "{}")
            else:
                block[member] = (block.get(member) or "") + str(pieces)
        content = [block for _, block in sorted(self._blocks.items())]
        return DIALECT.whole(
            {**self._message, "type": "message", "content": content, "usage": self._usage}
        )


def _placed(entries: Sequence[Entry]) -> Iterator[tuple[Entry, str]]:
    """The entries and their roles, `system` only where the API takes it."""
    roles = [_ROLES.get(entry.message.role, "user") for entry in entries]
    before = ""
    for at, (entry, role) in enumerate(zip(entries, roles, strict=True)):
        if role != "system":
            before = role
            yield entry, role
            continue
        # Those that stand side by side have the neighbours of all of them.
        after = next((one for one in roles[at + 1 :] if one != "system"), "")
        if not instructs_between(before, after):
            said = json.loads(entry.json)
            # One that says nothing, and only sets how the model works, may stand anywhere.
            if said["content"]:
                before, words = "user", {"role": "user", "content": said["content"]}
                yield Entry(json.dumps(words), True, entry.message), before
                if "output_config" not in said:
                    continue
                # A user's message sets nothing.
                entry = Entry(json.dumps({**said, "content": []}), True, entry.message)
        yield entry, role


def _one_of(messages: list[Json]) -> Json:
    blocks = [block for message in messages for block in _blocks(message)]
    return {**messages[0], "content": sorted(blocks, key=behind_results)}


def _blocks(message: Json) -> list[Json]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _usage(usage: Mapping[str, Any]) -> Usage:
    return Usage(
        input_tokens=count(usage, "input_tokens"),
        output_tokens=count(usage, "output_tokens"),
        cache_read_tokens=count(usage, "cache_read_input_tokens"),
        cache_write_tokens=count(usage, "cache_creation_input_tokens"),
        cache_write_1h_tokens=count(usage, "cache_creation", "ephemeral_1h_input_tokens"),
    )


DIALECT = Anthropic()
