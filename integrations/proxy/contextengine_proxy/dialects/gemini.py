"""Gemini's generateContent and streamGenerateContent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from contextengine.formats import from_gemini, to_gemini
from contextengine.formats.common import has_results
from contextengine.formats.node import Source, load
from contextengine.formats.to_gemini import behind_results
from contextengine.types import ROLE_ASSISTANT, Message, Usage

from ..document import Document
from .dialect import OPENER, Dialect, Entry, Json, Reply, StreamReader, count, joined

_PATH = re.compile(r"/models/(?P<model>[^/:]+):(?:generateContent|streamGenerateContent)/*$")
_SYSTEM = ("systemInstruction", "system_instruction")


class Gemini(Dialect):
    """Gemini: the conversation is `contents`, instructions stand in `systemInstruction`. The path
    names the model, and whether the reply comes as events."""

    path = ":generateContent"
    listed = "contents"
    provider = "google"
    outside = (*_SYSTEM, "tools")
    reserves = ("generationConfig.maxOutputTokens", "generation_config.max_output_tokens")

    def __init__(self, model: str = "") -> None:
        self._model = model

    def at(self, path: str) -> Gemini | None:
        found = _PATH.search(path)
        return Gemini(found["model"]) if found else None

    def model(self, body: Mapping[str, Any]) -> str:
        return self._model

    def stands_alone(self, body: Mapping[str, Any]) -> bool:
        return not (body.get("cachedContent") or body.get("cached_content"))

    def read(self, originals: Sequence[Source]) -> list[Message]:
        """A reply that came in pieces is kept by some clients (google-genai's chats) as a content
        for each, by others as a part for each: these are one message, and one text."""
        joined: list[str] = []
        natives: list[bytes] = []
        for model, several in groupby(map(_text, originals), _of_model):
            pieces = list(several)
            if not model:
                joined += pieces
                natives += [piece.encode() for piece in pieces]
                continue
            parts = [part for piece in pieces for part in _parts(piece)]
            joined.append(json.dumps({"role": "model", "parts": list(_merged(parts))}))
            whole = pieces[0] if len(pieces) == 1 else f"[{','.join(pieces)}]"
            natives.append(whole.encode())
        messages = from_gemini(joined)
        for message, native in zip(messages, natives, strict=True):
            message.native.json = native
        return messages

    def instructs(self, message: Mapping[str, Any]) -> bool:
        return False  # they stand in `systemInstruction`

    def write(self, message: Message) -> list[Json]:
        if message.native.json.startswith(b"["):
            pieces: list[Json] = json.loads(message.native.json)
            return pieces
        written = to_gemini([message])
        contents: list[Json] = written["contents"]
        # What instructs behind the beginning is a user's text.
        system = written.get("systemInstruction")
        return contents if system is None else [{"role": "user", **system}]

    def arranged(self, entries: Sequence[Entry]) -> list[str]:
        """Begins with the user: a call stands behind a user's turn or behind results. Results that
        we made share a content with those beside them, since Gemini refuses fewer in the content
        behind calls than were called."""
        kinds = ["results" if has_results(entry.message) else "" for entry in entries]
        written = joined(entries, kinds, _one_of)
        if entries and entries[0].message.role == ROLE_ASSISTANT:
            written.insert(0, json.dumps({"role": "user", "parts": [{"text": OPENER}]}))
        return written

    def instructed(self, document: Document, text: str, leading: list[str]) -> dict[str, object]:
        name = next((one for one in _SYSTEM if one in document.value), _SYSTEM[0])
        given = document.value.get(name)
        content = given if isinstance(given, Mapping) else {}
        return {name: {**content, "parts": [*(content.get("parts") or ()), {"text": text}]}}

    def whole(self, body: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Reply | None:
        reader = self.reader()
        # Without `alt=sse` the events are the elements of a list.
        for event in [body] if isinstance(body, Mapping) else body:
            reader.take(event)
        return reader.reply()

    def reader(self) -> StreamReader:
        return GeminiReader()

    def error(self, status: int, text: str) -> Json:
        kinds = {400: "INVALID_ARGUMENT", 413: "INVALID_ARGUMENT", 504: "DEADLINE_EXCEEDED"}
        said = {"code": status, "message": text, "status": kinds.get(status, "UNAVAILABLE")}
        return {"error": said}


def _one_of(contents: list[Json]) -> Json:
    parts = [part for content in contents for part in content["parts"]]
    return {**contents[0], "parts": sorted(parts, key=behind_results)}


class GeminiReader(StreamReader):
    """Parts, some of a text at a time. Of several candidates none is recorded."""

    def __init__(self) -> None:
        self._parts: list[Json] = []
        self._usage: Json = {}
        self._stopped = ""
        self._several = False

    def take(self, event: Mapping[str, Any]) -> None:
        self._usage |= event.get("usageMetadata") or {}
        for candidate in event.get("candidates") or ():
            self._several = self._several or candidate.get("index", 0) != 0
            self._parts += (candidate.get("content") or {}).get("parts") or ()
            self._stopped = candidate.get("finishReason") or self._stopped

    def reply(self) -> Reply | None:
        if not self._stopped or self._several:
            return None
        parts = list(_merged(self._parts))
        said = [json.dumps({"role": "model", "parts": parts})] if parts else []
        return Reply(DIALECT.read(said), _usage(self._usage), self._stopped)


def _text(original: Source) -> str:
    if isinstance(original, bytes):
        return original.decode()
    return original if isinstance(original, str) else json.dumps(original)


def _of_model(original: str) -> bool:
    return bool(json.loads(original).get("role") == "model")


def _parts(original: str) -> list[Json]:
    """The parts of a content. Raises FormatError."""
    node, _ = load(original)
    parts = node.nodes("parts")
    for part in parts:
        part.text("text")
    return [dict(part.value) for part in parts]


def _merged(parts: Sequence[Json]) -> Iterator[Json]:
    """The parts with texts that follow each other as one, as far as they are of one kind; one that
    says nothing is none, but for its signature."""
    last: Json | None = None
    for part in parts:
        if "text" not in part or part.keys() - {"text", "thought"}:
            if last is not None:
                yield last
            last = None
            if part.get("text", " ") or part.keys() - {"text", "thought"}:
                yield dict(part)
        elif last is not None and bool(last.get("thought")) == bool(part.get("thought")):
            last["text"] += part["text"] or ""
        elif part["text"]:
            if last is not None:
                yield last
            last = dict(part)
    if last is not None:
        yield last


def _usage(usage: Mapping[str, Any]) -> Usage | None:
    """What the model thought is counted apart from what it said."""
    given, cached = count(usage, "promptTokenCount"), count(usage, "cachedContentTokenCount")
    if given is None:
        return None
    said, thought = count(usage, "candidatesTokenCount"), count(usage, "thoughtsTokenCount")
    return Usage(
        input_tokens=given - (cached or 0),
        output_tokens=(said or 0) + (thought or 0),
        cache_read_tokens=cached,
        reasoning_tokens=thought,
        total_tokens=count(usage, "totalTokenCount"),
    )


DIALECT = Gemini()
