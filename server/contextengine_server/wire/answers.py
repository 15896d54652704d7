"""The results of a message, read once they are asked for: how long each is, and the message with
less of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.message import (
    MIN_LONG_CHARS,
    Answer,
    Entry,
    Replacements,
    Slot,
    Traits,
)

from .bounded import marked, may_be_bounded
from .placeholders import chars_of, text_chars_of

OFFLOADED_PATH = "/tool-results/"
"""Where Comis puts results that are too long (packages/agent/src/context-engine/
microcompaction-guard.ts): what is read from there was put away before."""

_KEPT = 4
"""Forms of a message that are kept."""


class ReadAnswers:
    """See `context.message.Answers`. Decodes the message when it is first asked, and keeps what it
    found but not the text."""

    __slots__ = ("_entry", "_made", "_replaced", "_results", "decided")

    def __init__(self, replaced: Callable[[Entry, Replacements], Slot], entry: Entry) -> None:
        self._replaced, self._entry = replaced, entry
        self._results: tuple[Answer, ...] | None = None
        self._made: dict[Replacements, Slot] = {}
        self.decided: dict[Any, Any] = {}

    @property
    def results(self) -> tuple[Answer, ...]:
        """In order."""
        if self._results is None:
            entry = self._entry
            message = marked(entry, entry.sequence)
            self._results = tuple(
                _answer(message.parts[part].tool_result, part, part in entry.traits.silent)
                for part, _ in entry.traits.results
            )
        return self._results

    def shown(self, parts: Replacements) -> Slot:
        """The message with a marker in place of what these of its results say."""
        if parts not in self._made:
            if len(self._made) == _KEPT:
                self._made.clear()
            self._made[parts] = self._replaced(self._entry, parts)
        return self._made[parts]


def may_be_long_or_silent(traits: Traits, body: bytes) -> bool:
    """True where a message of this encoding may hold a result that is long, with a picture as the
    characters that it is taken for, or one that says nothing."""
    may = len(body) > MIN_LONG_CHARS or bool(traits.silent or traits.pictured)
    return may and may_be_bounded(traits)


def _answer(result: pb.ToolResultPart, part: int, silent: bool) -> Answer:
    path = _details(result).get("filePath")
    recovered = isinstance(path, str) and OFFLOADED_PATH in path
    return Answer(part, chars_of(result), text_chars_of(result), silent, recovered)


def _details(result: pb.ToolResultPart) -> dict[str, Any]:
    if OFFLOADED_PATH.encode() not in result.details_json:
        return {}
    try:
        details = json.loads(result.details_json)
    except (ValueError, RecursionError):
        return {}
    return details if isinstance(details, dict) else {}
