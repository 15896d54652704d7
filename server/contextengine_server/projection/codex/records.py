r"""The records of `jsonl/1`: an item's content as lines of JSON that no text can break out of.

Keys are sorted, there are no spaces, and `<` as well as U+007F, U+0085, U+2028 and U+2029 are
always escaped (JSON escapes what is below U+0020 by itself). So each record is one line that begins
with `{`, holds no tag of anyone's, and parses to the exact strings.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ..model import (
    ChatRole,
    File,
    Image,
    Item,
    ItemCache,
    Opaque,
    Part,
    ProjectionImpossible,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    text_of,
)
from ..placeholders import size_and_hash
from ..task import Payload
from ..text import canonical, lone_surrogate, sha256

Record = dict[str, Any]

_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<\x7f\x85\u2028\u2029"}
RECORD_BYTES = 1_000
"""What a record takes in memory besides its texts, about."""
STUB_CHARS = 160
"""Characters of a stub's head and of its tail. A body is worth a stub from four times that on."""


class ItemRecords(msgspec.Struct):
    """What an item is as records, wherever it stands."""

    name: str
    records: list[Record] = msgspec.field(default_factory=list)
    lines: list[str] = msgspec.field(default_factory=list)
    """The records as lines, in their order."""
    bodies: list[int] = msgspec.field(default_factory=list)
    """The places of records whose text may become a stub: results."""
    arguments: list[int] = msgspec.field(default_factory=list)
    """The places of calls."""
    lost: list[tuple[str, str]] = msgspec.field(default_factory=list)
    """What no record says, and the rule."""
    redactions: int = 0
    chars: int = 0
    """Of the lines, their ends included."""
    shorts: dict[int, tuple[Record, str]] = msgspec.field(default_factory=dict)
    """Stubs that were made, by the record's place."""

    def short(self, at: int) -> tuple[Record, str]:
        """The record in the form of a stub, and its line."""
        if at not in self.shorts:
            record = stubbed(self.records[at])
            same = record is self.records[at]
            self.shorts[at] = record, self.lines[at] if same else line(record)
        return self.shorts[at]


class PlacedRecords(msgspec.Struct, frozen=True):
    """An item in its place. `position` orders items: the sequence, or the place in a list."""

    position: int
    item: Item
    turn: int
    made: ItemRecords


def line(record: Record) -> str:
    """A record as its line, without the line's end."""
    return canonical(record).translate(_ESCAPES)


def parse_line(text: str) -> Record:
    """The record of a line."""
    record: Record = json.loads(text)
    return record


def recorded(
    items: Sequence[Item], payload: Payload, redact: Callable[[str], str]
) -> list[ItemRecords]:
    """The items as records. Raises ProjectionImpossible for lone surrogates."""
    shown = payload.value  # a text is looked up far quicker than a member of an Enum
    key = shown, redact
    return [
        _recorded(item, shown, redact, item.id or f"list:{index}")
        if item.cache is None
        else item.cache.kept.get(key) or _kept(item, item.cache, shown, redact)
        for index, item in enumerate(items)
    ]


def placed(items: Sequence[Item], made: Sequence[ItemRecords]) -> list[PlacedRecords]:
    """The records of items in their places."""
    entries: list[PlacedRecords] = []
    turn = position = 0
    for item, one in zip(items, made, strict=True):
        if item.role is ChatRole.USER and item.summary is None and not item.id.startswith("ce:"):
            turn += 1
        position = max(
            position, item.sequence or (item.summary.first if item.summary else 0) or position + 1
        )
        entries.append(PlacedRecords(position, item, turn, one))
    return entries


def _recorded(
    item: Item, payload: str, redact: Callable[[str], str], place: str = ""
) -> ItemRecords:
    """`place` names an item that has neither id nor sequence. What a recall tool finds an item by
    is its host id or sequence."""
    made = ItemRecords(f"#{item.sequence}" if item.sequence and not item.id else item.id or place)
    _check(item, made.name)
    for part in item.parts:
        _add(made, item, made.name, part, Payload(payload), redact)
    made.lines = [line(record) for record in made.records]
    made.chars = sum(map(len, made.lines)) + len(made.lines)
    return made


def _kept(item: Item, cache: ItemCache, payload: str, redact: Callable[[str], str]) -> ItemRecords:
    """For items that come again: nothing that is made is changed later, so it serves every
    projection."""
    made = _recorded(item, payload, redact)
    cache.keep((payload, redact), made)
    cache.grew(3 * made.chars + RECORD_BYTES * (1 + len(made.records)))
    return made


def _add(
    made: ItemRecords,
    item: Item,
    name: str,
    part: Part,
    payload: Payload,
    redact: Callable[[str], str],
) -> None:
    role = item.custom_role or item.role.value
    match part:
        case Text():
            if (covers := item.summary) is not None:
                fact = {"depth": covers.depth, "covers": [covers.first, covers.last]}
                made.records.append({"t": "summary", "id": covers.id, **fact, "text": part.text})
            else:
                made.records.append({"t": "msg", "id": name, "role": role, "text": part.text})
        case ToolCall():
            arguments, changed = _shown(part.arguments, payload, redact)
            made.arguments.append(len(made.records))
            made.records.append(
                {"t": "call", "id": name, "call": part.id, "name": part.name, "args": arguments}
            )
            made.redactions += changed
        case ToolResult():
            text, changed = _shown(text_of(part.parts), payload, redact)
            record = {"t": "result", "id": name, "call": part.id, "text": text}
            made.bodies.append(len(made.records))
            made.records.append({**record, "error": True} if part.is_error else record)
            for inner in part.parts:
                if not isinstance(inner, Text):
                    _add(made, item, name, inner, payload, redact)
            made.redactions += changed
        case Image() | File():
            size, digest = size_and_hash(part)
            kind = "image" if isinstance(part, Image) else "file"
            made.records.append(
                {
                    "t": kind,
                    "id": name,
                    "mime": part.mime,
                    "bytes": size,
                    "sha256": digest,
                    "ref": part.uri or name,
                }
            )
        case Reasoning():
            made.lost.append(("reasoning: Codex takes none that is not its own", "R8"))
        case Opaque() if part.type == "reasoning":
            made.lost.append(("reasoning: Codex takes none that is not its own", "R8"))
        case Opaque():
            made.lost.append((f"{part.format} {part.type}: named, not shown", "jsonl"))
            made.records.append(stub(name, part.type or "item", part.json))


def _shown(text: str, payload: Payload, redact: Callable[[str], str]) -> tuple[str, int]:
    """A payload as it is shown, and 1 where secrets were taken out of it."""
    if payload is Payload.ELIDE:
        return "[omitted]", 0
    if payload is Payload.SHAPE:
        return shape_text(text), 0
    clean = redact(text)
    return clean, int(clean != text)


def stub(of: str, kind: str, text: str) -> Record:
    """What stands for a text that is not sent: how much it is, its hash, how it begins and ends."""
    return {
        "t": "stub",
        "of": of,
        "kind": kind,
        "chars": len(text),
        "sha256": sha256(text),
        "head": text[:STUB_CHARS],
        "tail": text[-STUB_CHARS:],
    }


def stubbed(record: Record) -> Record:
    """A result or call with a stub in place of its text. A short one stays: a stub would be
    longer."""
    key = "text" if record["t"] == "result" else "args"
    text = record[key]
    if len(text) <= 4 * STUB_CHARS:
        return record
    short = stub(record["id"], record["t"], text)
    return {name: value for name, value in record.items() if name != key} | {"stub": short}


def omitted(entries: Sequence[PlacedRecords]) -> Record:
    """The record that stands for whole items left out: how many, from which to which, and the hash
    of their records."""
    whole = "\n".join(one for entry in entries for one in entry.made.lines)
    first, last = entries[0], entries[-1]
    return {
        "t": "omitted",
        "n": len(entries),
        "first": first.made.name,
        "last": last.made.name,
        "sha256": sha256(whole),
    }


def shape_text(text: str) -> str:
    """JSON with its primitive values replaced by their types; the type alone of what is no JSON."""
    try:
        return canonical(shape(json.loads(text)))
    except (ValueError, RecursionError):
        return "[string]"


def shape(value: Any) -> Any:
    """The structure of a JSON value: `[string]`, `[number]`, `[boolean]`; null stays."""
    match value:
        case None:
            return None
        case bool():
            return "[boolean]"
        case int() | float():
            return "[number]"
        case str():
            return "[string]"
        case list():
            return [shape(inner) for inner in value]
        case _:
            return {key: shape(inner) for key, inner in value.items()}


def _check(item: Item, name: str) -> None:
    for part in item.parts:
        for text in _texts(part):
            if (at := lone_surrogate(text)) >= 0:
                raise ProjectionImpossible(
                    "messages",
                    f"{name} holds a lone surrogate at character {at}: Codex answers nothing to it",
                )


def _texts(part: Part) -> list[str]:
    match part:
        case Text() | Reasoning():
            return [part.text]
        case ToolCall():
            return [part.id, part.name, part.arguments]
        case ToolResult():
            return [part.id, *(text for inner in part.parts for text in _texts(inner))]
        case Opaque():
            return [part.json]
    return []
