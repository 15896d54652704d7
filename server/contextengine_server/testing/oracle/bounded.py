"""What head and tail must be: the message as it was stored, less one stretch of its text that the
marker owns up to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from contextengine_proto.v1 import message_pb2 as pb

MARKER = re.compile(
    r"\n\[\.\.\. (?P<left>[\d,]+) of (?P<total>[\d,]+) characters are left out here; "
    r"(?:the whole message is stored: expand sequence (?P<sequence>\d+) to read it|the caller has"
    r" the whole message) \.\.\.\]\n"
)


def dishonest(item: pb.Item, stored: pb.Message) -> str | None:
    """What is wrong with a message that is shown head and tail; None where it says the truth."""
    shown = "".join(text.text for text in _texts(item.message.parts))
    whole = "".join(text.text for text in _texts(stored.parts))
    if _without_texts(item.message) != _without_texts(stored):
        return "changes more than texts"
    for marker in MARKER.finditer(shown):  # what the message itself says may look like one
        head, tail = shown[: marker.start()], shown[marker.end() :]
        left, total = (int(marker[name].replace(",", "")) for name in ("left", "total"))
        if (
            total == len(whole)
            and left == len(whole) - len(head) - len(tail) > 0
            and whole.startswith(head)
            and whole.endswith(tail)
            and int(marker["sequence"] or 0) == item.origin.sequence
        ):
            return None
    return "is not the stored text around an honest marker"


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
