"""How a summary must be shown: with what its row says, and its text inside a fence."""

from __future__ import annotations

import re

import msgspec

from contextengine_proto.v1 import message_pb2 as pb

HEADER = re.compile(
    r"\[Summary (?P<id>\S+): depth=(?P<depth>\d+), descendant_count=(?P<count>\d+), "
    r"time=(?P<time>\S+), trust=untrusted(?P<fallback>, fallback=true)?\]"
)


class Covering(msgspec.Struct, frozen=True):
    """A live top-level summary, by its row."""

    id: str
    depth: int
    first_sequence: int
    last_sequence: int
    message_count: int
    start: str
    """The earliest time covered, ISO 8601 in UTC; `unknown`."""
    end: str
    body: str
    """The text of the summarizer."""


def dishonest(covering: Covering, item: pb.Item) -> str | None:
    """What is wrong with how a summary is shown."""
    if (
        item.message.role not in (pb.ROLE_USER, pb.ROLE_ASSISTANT)
        or not item.message.id.startswith("ce:")
        or len(item.message.parts) != 1
    ):
        return "is no message of the user's or the model's role with an id of the service"
    lines = item.message.parts[0].text.text.split("\n")
    header = HEADER.fullmatch(lines[0])
    if header is None:
        return "has no header"
    time = covering.start if covering.start == covering.end else f"{covering.start}/{covering.end}"
    said = (
        header["id"],
        int(header["depth"]),
        int(header["count"]),
        header["time"],
    )
    row = (covering.id, covering.depth, covering.message_count, time)
    if said != row:
        return f"says {said}, its row says {row}"
    fence = lines[1].rpartition(" ")[2]
    closing = [number for number, line in enumerate(lines) if line.startswith(fence)]
    if (
        not lines[1].startswith("<<<untrusted ")
        or len(closing) != 1
        or closing[0] != len(lines) - 2
    ):
        return "has a fence that does not hold its body"
    body = "\n".join(lines[2 : closing[0]])
    if fence in body or body != covering.body:
        return "has another body than its row, or one that closes its fence"
    info = item.summary
    if (info.id, info.depth, info.message_count, info.first_sequence, info.last_sequence) != (
        covering.id, covering.depth, covering.message_count, covering.first_sequence,
        covering.last_sequence,
    ):  # fmt: skip
        return "carries other facts than its row"
    return None
