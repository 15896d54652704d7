"""OpenAI Responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from contextengine.formats import from_responses, to_responses
from contextengine.formats.node import Source
from contextengine.types import Message, Usage

from ..document import Document
from .chat import openai_error
from .dialect import Dialect, Json, Reply, StreamReader, count

_ENDS = ("response.completed", "response.incomplete")


class Responses(Dialect):
    """Responses: the conversation is `input`, where the provider does not keep it itself."""

    path = "/responses"
    listed = "input"
    provider = ""
    outside = ("instructions", "tools", "text")
    reserves = ("max_output_tokens",)

    def stands_alone(self, body: Mapping[str, Any]) -> bool:
        return not body.get("previous_response_id") and not body.get("conversation")

    def orders(self, message: Mapping[str, Any]) -> bool:
        return message.get("type") == "compaction_trigger"

    def read(self, originals: Sequence[Source]) -> list[Message]:
        return from_responses(originals)

    def write(self, message: Message) -> list[Json]:
        return to_responses([message])

    def instructed(self, document: Document, text: str, leading: list[str]) -> dict[str, object]:
        given = document.value.get("instructions")
        return {"instructions": f"{given}\n\n{text}" if isinstance(given, str) and given else text}

    def whole(self, body: Mapping[str, Any]) -> Reply | None:
        if body.get("status") not in ("completed", "incomplete"):
            return None
        usage = body.get("usage")
        return Reply(
            from_responses(body["output"]),
            _usage(usage) if isinstance(usage, Mapping) else None,
            str(body.get("status")),
        )

    def reader(self) -> StreamReader:
        return ResponsesReader()

    def error(self, status: int, text: str) -> Json:
        return openai_error(status, text)


class ResponsesReader(StreamReader):
    """The last event holds the whole reply; its items came before, where it does not."""

    def __init__(self) -> None:
        self._items: list[Json] = []
        self._whole: Json | None = None

    def take(self, event: Mapping[str, Any]) -> None:
        if event.get("type") == "response.output_item.done":
            self._items.append(event["item"])
        elif event.get("type") in _ENDS:
            self._whole = event["response"]

    def reply(self) -> Reply | None:
        if self._whole is None:
            return None
        return DIALECT.whole({**self._whole, "output": self._whole.get("output") or self._items})


def _usage(usage: Mapping[str, Any]) -> Usage:
    cached = count(usage, "input_tokens_details", "cached_tokens")
    given = count(usage, "input_tokens")
    return Usage(
        input_tokens=None if given is None else given - (cached or 0),
        output_tokens=count(usage, "output_tokens"),
        cache_read_tokens=cached,
        reasoning_tokens=count(usage, "output_tokens_details", "reasoning_tokens"),
        total_tokens=count(usage, "total_tokens"),
    )


DIALECT = Responses()
