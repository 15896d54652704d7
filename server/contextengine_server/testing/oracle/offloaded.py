"""What results must be that are shown in short from their arrival on: a reference with the head and
the tail of what is stored, words in place of none, or a text cut around an honest marker."""

from __future__ import annotations

import re

from contextengine_proto.v1 import message_pb2 as pb

from .bounded import MARKER, with_markers

REFERENCE = re.compile(
    r"\[Tool result offloaded to disk: (?P<tool>[^\n]*) returned (?P<chars>\d+) chars\."
    r" hasMore=true\n"
    r"(?:All of it is stored: expand sequence (?P<sequence>\d+) to read it, in pages, by"
    r' \w+ \{"sequences": \[(?P<again>\d+)\]\}|The caller has all of it\.)'
    r"\n--- head \((?P<head>\d+) chars\) ---\n"
)
NOTHING = re.compile(r'\[Tool "[^\n]*" returned no output\.\]')
IMAGE, OTHER = 6_400, 256


def dishonest(item: pb.Item, stored: pb.Message) -> str | None:
    """What is wrong with a message of which results are shown in short; None where it says the
    truth."""
    stored = with_markers(stored, item)
    shown = item.message
    if shown.HasField("native"):
        return "carries the native form, which says all of it"
    if len(shown.parts) != len(stored.parts):
        return "has other parts than the stored message"
    changed = [
        (part, whole)
        for part, whole in zip(shown.parts, stored.parts, strict=True)
        if part != whole
    ]
    bare, kept = pb.Message(), pb.Message()
    bare.CopyFrom(shown)
    kept.CopyFrom(stored)
    for message in (bare, kept):
        message.ClearField("native")
        del message.parts[:]
    if bare != kept or not changed:
        return "is not the stored message" if bare != kept else "leaves nothing out"
    return next(filter(None, (wrong(*pair, item.origin.sequence) for pair in changed)), None)


def wrong(part: pb.Part, whole: pb.Part, sequence: int) -> str | None:
    """What is wrong with a result that is shown in short; None where nothing is."""
    if not part.HasField("tool_result") or not whole.HasField("tool_result"):
        return "changes what is no result"
    result, stored = part.tool_result, whole.tool_result
    others = [inner for inner in stored.parts if not inner.HasField("text")]
    bare, kept = pb.ToolResultPart(), pb.ToolResultPart()
    bare.CopyFrom(result)
    kept.CopyFrom(stored)
    del bare.parts[:]
    del kept.parts[:]
    if bare != kept or [inner for inner in result.parts if not inner.HasField("text")] != others:
        return "changes what a result answers, or its pictures"
    said, text = _text(result), _text(stored)
    if NOTHING.fullmatch(said):
        silent = not stored.is_error and not text.strip() and not others
        return None if silent else "says that there was no output"
    size = len(text) + sum(IMAGE if inner.HasField("image") else OTHER for inner in others)
    if _refers(said, text, size, sequence) or _cut(said, text, sequence):
        return None
    return "is neither a reference to what is stored nor cut around an honest marker"


def _refers(said: str, text: str, size: int, sequence: int) -> bool:
    found = REFERENCE.match(said)
    if found is None or int(found["chars"]) != size:
        return False
    if {int(found["sequence"] or 0), int(found["again"] or 0)} != {sequence}:
        return False
    head = said[found.end() : found.end() + int(found["head"])]
    tail = "" if len(text) <= 2_000 else f"\n--- tail (500 chars) ---\n{text[-500:]}"
    return head == text[:1_500] and said[found.end() + len(head) :] == f"{tail}\n]"


def _cut(said: str, text: str, sequence: int) -> bool:
    return any(
        text.startswith(said[: marker.start()])
        and text.endswith(said[marker.end() :])
        and int(marker["left"].replace(",", "")) == len(text) - len(said) + len(marker[0])
        and int(marker["total"].replace(",", "")) == len(text)
        and int(marker["sequence"] or 0) == sequence
        for marker in MARKER.finditer(said)
    )


def _text(result: pb.ToolResultPart) -> str:
    return "".join(inner.text.text for inner in result.parts)
