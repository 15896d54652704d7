"""What a message says to others, apart from a model's private reasoning.

Reasoning is a model's own: it goes back to the provider that made it, within its message, and
nowhere else. So what makes summaries, notes, an index of words or a text for another model reads
messages through this module. Reasoning comes as parts of its own, as opaque items of a vendor, and
as text between tags, as models write it that have no other way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import orjson

from contextengine_proto.v1 import message_pb2 as pb

Range = tuple[int, int]

_TAG = re.compile(
    r"<\s*(/?)\s*((?:antml:)?(?:think(?:ing)?|thought|reasoning)|antthinking)\b[^<>]*>",
    re.IGNORECASE,
)
"""The tags that models set around reasoning, as OpenClaw knows them, and `reasoning`."""

_OPAQUE = frozenset({"reasoning", "thinking", "redacted_thinking"})
"""What vendors call an item of reasoning in `type`."""

WRITES_TAGS = frozenset({pb.ROLE_ASSISTANT, pb.ROLE_CUSTOM})
"""Who may reason in text. What a user or a tool says with such tags in it is about them."""


def is_reasoning(part: pb.Part) -> bool:
    """True for a part that is reasoning as a whole."""
    kind = part.WhichOneof("kind")
    if kind == "opaque":
        return bool(part.opaque.type in _OPAQUE or _type_of(part.opaque.json) in _OPAQUE)
    return bool(kind == "reasoning")


def said(message: pb.Message) -> list[pb.Part]:
    """The message's parts without reasoning, for anybody but the model that wrote it: parts of
    reasoning are left out, and of its texts what stands between the tags of reasoning. A text of
    nothing else is left out whole. The message stays as it is."""
    kept = spoken_parts(message.parts)
    if message.role not in WRITES_TAGS:
        return kept
    texts = [part.text.text for part in kept if part.WhichOneof("kind") == "text"]
    if not any("<" in text for text in texts):
        return kept
    spoken = iter(without_reasoning(texts))
    made = []
    for part in kept:
        if part.WhichOneof("kind") == "text" and (text := next(spoken)) != part.text.text:
            if text.strip():
                made.append(pb.Part(text=pb.TextPart(text=text)))
        else:
            made.append(part)
    return made


def spoken_parts(parts: Iterable[pb.Part]) -> list[pb.Part]:
    """The parts without those that are reasoning, within results of tools as well."""
    return [_spoken(part) for part in parts if not is_reasoning(part)]


def _spoken(part: pb.Part) -> pb.Part:
    """The part, without reasoning within it."""
    if part.WhichOneof("kind") != "tool_result":
        return part
    inner = part.tool_result.parts
    if all(one.WhichOneof("kind") == "text" for one in inner):
        return part
    shown = pb.Part()
    shown.CopyFrom(part)
    del shown.tool_result.parts[:]
    shown.tool_result.parts.extend(spoken_parts(inner))
    return shown


def reasons(message: pb.Message) -> bool:
    """True where the message holds private reasoning in any form."""
    return sum(map(_weight, said(message))) != sum(map(_weight, message.parts))


def without_reasoning(texts: Sequence[str]) -> list[str]:
    """The texts of one message without what stands between tags of reasoning."""
    return [spoken for spoken, _ in told_apart(texts)]


def told_apart(texts: Sequence[str]) -> list[tuple[str, str]]:
    """The texts of one message, read as one: of each what is said, and what is reasoning, without
    its tags."""
    ranges = reasoning_ranges("".join(texts))
    made, start = [], 0
    for text in texts:
        spoken, hidden, at = [], [], 0
        for first, last in ranges:
            first, last = max(first - start, at), min(last - start, len(text))
            if first < last:
                spoken.append(text[at:first])
                hidden.append(text[first:last])
                at = last
        spoken.append(text[at:])
        made.append(("".join(spoken), _TAG.sub("", "".join(hidden)).strip()))
        start += len(text)
    return made


def reasoning_ranges(text: str) -> list[Range]:
    """Where reasoning stands in a text, tags included, in order and apart.

    A tag that is opened ends with its like; where the text was cut off before that, all of the rest
    is reasoning if the tag begins a line, and the tag is only spoken of otherwise. A tag that is
    closed and was never opened ends reasoning that the prompt opened (as DeepSeek-R1's template
    does) where it ends or begins a line.
    """
    tags = [(m.start(), m.end(), bool(m[1]), m[2].casefold()) for m in _TAG.finditer(text)]
    # By name: a tag behind the last that closes its like is open, which need not be looked for.
    closed = {name: number for number, (_, _, closes, name) in enumerate(tags) if closes}
    ranges: list[Range] = []
    at = 0
    while at < len(tags):
        begin, end, closes, name = tags[at]
        if closes:
            if _begins_line(text, begin) or _ends_line(text, end):
                ranges = [(0, end)]
            at += 1
            continue
        last = _closing(tags, at) if closed.get(name, -1) > at else None
        if last is not None:
            ranges.append((begin, tags[last][1]))
            at = last + 1
        elif _begins_line(text, begin):
            ranges.append((begin, len(text)))
            break
        else:
            at += 1
    return ranges


def _closing(tags: Sequence[tuple[int, int, bool, str]], opened: int) -> int | None:
    """The tag that closes this one: at its depth, else the last of its name; None where there is
    none."""
    name, depth, last = tags[opened][3], 0, None
    for at in range(opened, len(tags)):
        _, _, closes, other = tags[at]
        if other != name:
            continue
        depth += -1 if closes else 1
        if closes:
            last = at
        if not depth:
            return at
    return last


def _begins_line(text: str, at: int) -> bool:
    # Character by character: of a line of a megabyte with tags all over no slice can be afforded.
    while at and text[at - 1] != "\n" and text[at - 1].isspace():
        at -= 1
    return not at or text[at - 1] == "\n"


def _ends_line(text: str, at: int) -> bool:
    while at < len(text) and text[at] != "\n" and text[at].isspace():
        at += 1
    return at == len(text) or text[at] == "\n"


def _type_of(raw: bytes) -> object:
    """What an opaque item says that it is."""
    try:
        value = orjson.loads(raw)
    except ValueError:
        return None
    return value.get("type") if isinstance(value, dict) else None


def _weight(part: pb.Part) -> int:
    return 1 + part.ByteSize()
