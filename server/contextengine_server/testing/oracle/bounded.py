"""What head and tail must be: the message as it was stored, less base64 that markers own up to, and
less one stretch of what it says, and one of each of its results or of all of them, that other
markers do."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator
from hashlib import sha256

from contextengine_proto.v1 import message_pb2 as pb

MARKER = re.compile(
    r"\n\[\.\.\. (?P<left>[\d,]+) of (?P<total>[\d,]+) characters are left out here; "
    r"(?:the whole message is stored: expand sequence (?P<sequence>\d+) to read it|the caller has"
    r" the whole message) \.\.\.\]\n"
)


ENCODED = re.compile(
    r"\[(?P<media>[\w.+/-]+), (?P<size>[\d,]+) bytes, sha256 (?P<hash>[0-9a-f]{16}): left out here;"
    r" (?:expand sequence (?P<sequence>\d+) to read it|the caller has it)\]"
)
_CANDIDATE = re.compile(
    r"(?:data:[\w.+/;=-]*,)?(?P<encoded>(?:[\w+/-]{60,}(?:\r?\n)?)+(?:[\w+/-]*={1,2})?)"
)


def with_markers(stored: pb.Message, item: pb.Item) -> pb.Message:
    """The stored message with an item's markers where the base64 stands that they tell of, each by
    its size and hash; those that tell of nothing are left out."""
    markers = {
        (marker["size"], marker["hash"]): marker[0]
        for text in _texts(item.message.parts)
        for marker in ENCODED.finditer(text.text)
        if int(marker["sequence"] or 0) == item.origin.sequence
    }

    def marked(found: re.Match[str]) -> str:
        encoded = found["encoded"]
        characters = "".join(encoded.split()).rstrip("=").replace("-", "+").replace("_", "/")
        data = b64decode(characters + "=" * (-len(characters) % 4))
        key = f"{len(data):,}", sha256(data).hexdigest()[:16]
        return markers[key] + "\n" * encoded.endswith("\n") if key in markers else found[0]

    expected = pb.Message()
    expected.CopyFrom(stored)
    if markers:
        expected.ClearField("native")
        for text in _texts(expected.parts):
            text.text = _CANDIDATE.sub(marked, text.text)
    return expected


def dishonest(item: pb.Item, stored: pb.Message) -> str | None:
    """What is wrong with a message that is shown head and tail; None where it says the truth."""
    stored = with_markers(stored, item)
    if item.message == stored and ENCODED.search("".join(t.text for t in _texts(stored.parts))):
        return None
    if _without_texts(item.message) != _without_texts(stored):
        return "changes more than texts"
    sequence = item.origin.sequence
    said, whole = _said(item.message), _said(stored)
    results, answers = _results(item.message), _results(stored)
    if (
        (said, results) != (whole, answers)
        and _honest(said, whole, sequence)
        and (
            all(map(_honest, results, answers, [sequence] * len(answers)))
            or _honest("".join(results), "".join(answers), sequence)
        )
    ):
        return None
    return "is not the stored text around an honest marker"


def _honest(shown: str, whole: str, sequence: int) -> bool:
    """True where a text is shown as it is stored, or its head and tail are around a marker that
    says the truth."""
    if shown == whole:
        return True
    for marker in MARKER.finditer(shown):  # what the message itself says may look like one
        head, tail = shown[: marker.start()], shown[marker.end() :]
        left, total = (int(marker[name].replace(",", "")) for name in ("left", "total"))
        if (
            total == len(whole)
            and left == len(whole) - len(head) - len(tail) > 0
            and whole.startswith(head)
            and whole.endswith(tail)
            and int(marker["sequence"] or 0) == sequence
        ):
            return True
    return False


def _said(message: pb.Message) -> str:
    """What is said beside results."""
    return "".join(part.text.text for part in message.parts if part.HasField("text"))


def _results(message: pb.Message) -> list[str]:
    """What each result says."""
    return [
        "".join(text.text for text in _texts(part.tool_result.parts))
        for part in message.parts
        if part.HasField("tool_result")
    ]


def _without_texts(message: pb.Message) -> pb.Message:
    bare = pb.Message()
    bare.CopyFrom(message)
    bare.ClearField("native")
    for text in _texts(bare.parts):
        text.text = ""
    return bare


def _texts(parts: Iterable[pb.Part]) -> Iterator[pb.TextPart]:
    for part in parts:
        if part.HasField("text"):
            yield part.text
        elif part.HasField("tool_result"):
            yield from _texts(part.tool_result.parts)
