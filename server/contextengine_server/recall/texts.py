"""A message as a text that can be searched and read, and long texts cut into passages.

What a person or a model would look for: what was said, the tools that were called with what, and
what they answered. Not reasoning, which is the model's own, whatever form it has; nor the bytes of
pictures and files, but their names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ParamSpec, TypeVar

import orjson

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.store.rows import MessageRow, SummaryRow
from contextengine_server.store.search import MAX_PARTS
from contextengine_server.wire.damage import intact, message_of, readable
from contextengine_server.wire.privacy import said

P = ParamSpec("P")
T = TypeVar("T")

AT_ONCE = 128 * 1024
"""Characters or bytes that are gone through on the loop: 2 ms, where to hand them over and to be
woken again takes a tenth of one by itself, and more beside others that do."""

PASSAGE_CHARS = 8_000
"""How long a passage is: short enough to be indexed in a few ms, and to rank by what stands
together."""

OVERLAP_CHARS = 200
"""What neighbouring passages share, so that what is looked for stands whole in one of them."""

ROLES = {1: "user", 2: "assistant", 3: "tool", 4: "system", 5: "developer", 6: "custom"}
"""Role numbers of the wire by name; others are `custom`."""


def text_of(message: pb.Message) -> str:
    """The message as text; a line of its own for every call and answer."""
    return _carried("\n".join(filter(None, _lines(said(message)))))


def text_of_row(row: MessageRow) -> str:
    """The same of a stored row; of one that cannot be read what stands for it."""
    return text_of(message_of(row))


def searched_text(row: MessageRow) -> str:
    """The text of a stored row as it is searched: with the name of who speaks, which is what a
    conversation between people is asked by."""
    return _searched(message_of(row))


def indexed_passages(row: MessageRow) -> list[str]:
    """The passages of a stored row that the index holds: none where nothing is said, or the row is
    not what its hash names."""
    message = readable(row)
    text = "" if message is None else _searched(message)
    return passages_of(text) if text.strip() else []


def summary_passages(row: SummaryRow) -> list[str]:
    """The passages of a stored summary that the index holds: an empty one where its text is not
    what its hash names."""
    return passages_of(row.text if intact(row) else "")


def _searched(message: pb.Message) -> str:
    text = text_of(message)
    return f"{_carried(message.name)}: {text}" if message.name and text.strip() else text


def role_name(role: int) -> str:
    """What a role is called."""
    return ROLES.get(role, "custom")


def passages_of(text: str) -> list[str]:
    """The text, cut into passages that overlap."""
    if len(text) <= PASSAGE_CHARS:
        return [text]
    step = max(PASSAGE_CHARS - OVERLAP_CHARS, -(-len(text) // MAX_PARTS))
    last = len(text) - OVERLAP_CHARS
    return [text[start : start + step + OVERLAP_CHARS] for start in range(0, last, step)]


def cuts(part: int, text: str) -> tuple[bool, bool]:
    """Whether a passage was cut from its message at its beginning, and perhaps at its end."""
    return part > 0, len(text) >= PASSAGE_CHARS


async def beside_loop(size: int, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """What comes of work on texts of this size."""
    if size <= AT_ONCE:
        return work(*args, **named)
    return await asyncio.to_thread(work, *args, **named)


def _lines(parts: Iterable[pb.Part]) -> Iterator[str]:
    for part in parts:
        kind = part.WhichOneof("kind")
        if kind == "text":
            yield part.text.text
        elif kind == "tool_call":
            yield f"[call {part.tool_call.name}]"
            yield from _arguments(part.tool_call.arguments_json)
        elif kind == "tool_result":
            result = part.tool_result
            name = f" {result.name}" if result.name else ""
            yield f"[{'error' if result.is_error else 'result'}{name}]"
            yield from _lines(result.parts)
        elif kind == "image":
            yield f"[image {part.image.uri}]" if part.image.uri else "[image]"
        elif kind == "file":
            yield f"[file {' '.join(filter(None, (part.file.name, part.file.uri)))}]"
        elif kind == "opaque":
            yield from _arguments(part.opaque.json)


def _arguments(raw: bytes) -> Iterator[str]:
    """JSON as lines of `name: value`, its escapes undone; what is no JSON as it is."""
    try:
        value = orjson.loads(raw)
    except ValueError:
        yield raw.decode("utf-8", "replace")
    else:
        yield from _values(value)


def _values(value: Any) -> Iterator[str]:
    # With a stack of its own: what is read may be nested deeper than Python calls itself.
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            inner = [(f"{name}.{key}" if name else key, one) for key, one in value.items()]
            waiting += reversed(inner)
        elif isinstance(value, list):
            waiting += [(name, one) for one in reversed(value)]
        else:
            text = value if isinstance(value, str) else orjson.dumps(value).decode()
            yield f"{name}: {text}" if name else text


def _carried(text: str) -> str:
    """The text without what neither a database nor a wire carries as text."""
    return text.replace("\0", " ")
