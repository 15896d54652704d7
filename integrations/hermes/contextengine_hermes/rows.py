"""Messages as Hermes has them, chat messages with keys of its own, and as the service has them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from contextengine import Message, user
from contextengine.formats import FormatError, from_openai, to_openai
from contextengine.types import (
    ROLE_CUSTOM,
    ROLE_DEVELOPER,
    ROLE_SYSTEM,
    Item,
    Part,
    TextPart,
)

from .block import block, part
from .tasks import without_tasks

Row = dict[str, Any]
"""A message of Hermes. Keys that begin with an underscore are not sent to a model."""
NAMELESS = "invalid_tool_call"
"""The name under which Hermes sends a call that has none."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A message of Hermes' list, and what stands in it."""

    row: Row
    """As Hermes has it."""
    told: tuple[str | Row, ...]
    """In order: ids of items of the service, and messages that others said, without Hermes' own
    keys. Hermes joins messages of users that stand side by side, so it may hold several."""

    @property
    def said(self) -> list[Row]:
        """What others said in it."""
        return [one for one in self.told if not isinstance(one, str)]


def pieces_of(found: Iterable[Listed]) -> list[str | Row]:
    """What a list is made of, however Hermes joined it."""
    return [piece for one in found for piece in one.told]


def unjoined(found: Iterable[Listed], known: Sequence[bytes]) -> list[Listed]:
    """A list with users' messages apart again that Hermes joined. known: the names of what it was
    made of before."""
    at = 0
    made: list[Listed] = []
    for one in found:
        told: list[str | Row] = []
        for piece in one.told:
            parts = list(_unjoined(piece, known, at))
            told += parts
            at += len(parts)
        made.append(Listed(one.row, tuple(told)))
    return made


def _unjoined(piece: str | Row, known: Sequence[bytes], at: int) -> Iterator[str | Row]:
    """Apart where nothing is known behind the words that it begins with, or what follows them: else
    a user took them back, and said them again with more."""
    while at < len(known) and not isinstance(piece, str) and (cut := _cut(piece, known[at])):
        first, more = cut
        at += 1
        if at < len(known) and _name(more) != known[at] and _cut(more, known[at]) is None:
            break
        yield first
        piece = more
    yield piece


def _cut(said: Row, name: bytes) -> tuple[Row, Row] | None:
    """A user's message that begins with another, of this name: that one, and the rest."""
    content, size = said.get("content"), name.partition(b" ")[0]
    if said.get("role") != "user" or not isinstance(content, str) or not size.isdigit():
        return None
    end = len(content) - len(content.lstrip()) + int(size)
    rest = content[end:]
    words = rest.lstrip()
    if not words or "\n\n" not in rest[: len(rest) - len(words)]:
        return None
    first = {key: said[key] for key in said if key != "api_content"} | {"content": content[:end]}
    return (first, {**first, "content": words}) if _name(first) == name else None


def names_of(pieces: Iterable[str | Row]) -> list[bytes]:
    """What tells each from others, also when Hermes read it from its disk, where pictures are
    words, ends are stripped and there are more details."""
    return [one.encode() if isinstance(one, str) else _name(one) for one in pieces]


def messages_of(pieces: Iterable[str | Row]) -> list[Message]:
    """As the service is told of them: its own items by their ids alone."""
    return [
        user("(an item of the service)", id=one) if isinstance(one, str) else _message(one)
        for one in pieces
    ]


def steered(piece: str | Row) -> bool:
    """Whether a user's words stand behind a tool's result: there Hermes writes what is said to it
    amid a turn, in a message that it may have sent before. Not in one that the service shows in
    short: the whole of it is stored."""
    if isinstance(piece, str) or piece.get("role") != "tool":
        return False
    content = _flat(piece.get("content"))
    return content.endswith("[/OUT-OF-BAND USER MESSAGE]") and _SHORT not in content


_SHORT = " characters are left out here; the whole message is stored: expand sequence "
"""What the service writes into such a message."""


def listed(rows: Iterable[Row]) -> list[Listed]:
    """A list of Hermes. What Hermes made up itself is left out."""
    found = [Listed(row, tuple(_told(row))) for row in rows if not _passing(row)]
    return [one for one in found if one.told]


def placed(items: Sequence[Item], known: Sequence[Listed], addition: str) -> list[Row]:
    """The list that the service answered, in Hermes' own messages where they are shown verbatim.
    Summaries and notes that stand side by side are one message; what the model is told of them
    stands in the first."""
    rows: list[Row] = []
    shown: list[tuple[str, str]] = []

    def close() -> None:
        nonlocal addition
        if shown or addition:
            rows.append({"role": "user", "content": block(shown, addition)})
            shown.clear()
            addition = ""

    for item, own in zip(items, _own(items, known), strict=True):
        if _made_up(item):
            shown.append((item.message.id, "".join(p.text.text for p in item.message.parts)))
            continue
        if shown or (addition and item.message.role not in _LEADING):
            close()
        rows += own
    close()
    return rows


def _own(items: Sequence[Item], known: Sequence[Listed]) -> list[list[Row]]:
    """What is shown for each item, in Hermes' messages. Sought from the end: a list that is made
    ends as the one does that it is made of, whose messages may be alike."""
    own = [(one, said) for one in known for said in one.said]
    names = [_name(said) for _, said in own]
    made: list[list[Row]] = []
    at = len(own)
    for item in reversed(items):
        rows: list[Row] = []
        for written in () if _made_up(item) else reversed(to_openai([item.message])):
            found = _find(written, own, names, at)
            at = at if found is None else found
            if found is None or not item.message.HasField("native"):
                rows.append(written)
                continue
            whole, said = own[found]
            rows.append(whole.row if whole.told == (said,) else {**whole.row, **said})
        made.append(rows[::-1])
    return made[::-1]


def _made_up(item: Item) -> bool:
    return item.HasField("summary") or item.message.role == ROLE_CUSTOM


_LEADING = (ROLE_SYSTEM, ROLE_DEVELOPER)
NOTE = "ce:note"
"""Stands for a block that shows no item, only what the model is told."""


def _find(
    written: Row, own: Sequence[tuple[Listed, Row]], names: Sequence[bytes], end: int
) -> int | None:
    """Which message of the list it is, before another. A result is the one of its call, where
    nothing else stands between: Hermes may have shortened it, or written a user's words behind
    it."""
    if written["role"] == "tool":
        for at in range(end - 1, -1, -1):
            said = own[at][1]
            if said.get("role") != "tool":
                break
            if said.get("tool_call_id") == written["tool_call_id"]:
                return at
    name = _name(written)
    return next((at for at in range(end - 1, -1, -1) if names[at] == name), None)


def _name(said: Row) -> bytes:
    calls = said.get("tool_calls") or None
    words = _flat(said.get("content"))
    parts = [said.get("role"), words, calls, said.get("tool_call_id")]
    whole = json.dumps(parts, sort_keys=True, default=str)
    return b"%d " % len(words) + blake2b(whole.encode(), digest_size=16).digest()


def _message(said: Row) -> Message:
    """A message; what is none in the format stands in its text, so that it keeps nothing that
    follows from being stored."""
    try:
        return from_openai([said])[0]
    except FormatError:
        written = json.dumps(said, default=str, sort_keys=True)
        return Message(
            role=ROLE_CUSTOM, custom_role="unreadable", parts=[Part(text=TextPart(text=written))]
        )


def _told(row: Row) -> Iterator[str | Row]:
    """What stands in a message. What was sent counts, where Hermes wrote down something else."""
    said = {key: value for key, value in row.items() if not key.startswith("_")}
    content, sent = row.get("content"), row.get("api_content")
    if isinstance(content, str) and isinstance(sent, str) and not sent.startswith(content):
        said["content"] = content = sent
    if said.get("tool_calls"):
        said["tool_calls"] = [_named(call) for call in said["tool_calls"]]
    if row.get("role") != "user" or not isinstance(content, str | list):
        yield said
        return
    whole = content if isinstance(content, list) else [{"text": content}]
    kept: list[Any] = []
    for one in _parted(whole):
        if not isinstance(one, str):
            kept.append(one)
            continue
        if kept:
            yield _partly(said, kept)
            kept = []
        yield one
    if kept:
        yield said if kept == whole else _partly(said, kept)


def _named(call: Any) -> Any:
    """A call, which a model may have made without a name: under the name that Hermes sends."""
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or str(function.get("name") or "").strip():
        return call
    return {**call, "function": {**function, "name": NAMELESS}}


def _partly(said: Row, kept: list[Any]) -> Row:
    """A message that others said, without what else stands in the row."""
    words = kept if isinstance(said["content"], list) else kept[0]["text"]
    return {key: said[key] for key in said if key != "api_content"} | {"content": words}


def _parted(whole: Sequence[Any]) -> Iterator[Any]:
    """Parts of a message, with the ids of the service's items in place of blocks in their texts;
    without the task list that Hermes writes down behind a compaction."""
    for one in whole:
        text = one.get("text") if isinstance(one, Mapping) else None
        if not isinstance(text, str):
            yield one
            continue
        for piece in part(text).pieces or ("",):
            if not isinstance(piece, str):
                yield from piece or (NOTE,)
            elif (words := without_tasks(piece)) == text:
                yield one
            elif words.strip():
                yield {**one, "text": words}


def _flat(content: object) -> str:
    """A content as Hermes writes it down."""
    if not isinstance(content, list):
        return str(content or "").strip()
    pieces = [piece if isinstance(piece, Mapping) else {} for piece in content]
    return "\n".join(str(piece.get("text", _PICTURE)) for piece in pieces).strip()


_PICTURE = "[screenshot]"
_TASKS = "_todo_snapshot_synthetic"


def _passing(row: Row) -> bool:
    """Whether Hermes made it up to get a turn going again: it takes it back itself. Its task list
    stays, and the user's next words may be joined to it."""
    return any(
        (key.endswith("_synthetic") and key != _TASKS) or key == "_thinking_prefill" for key in row
    )
