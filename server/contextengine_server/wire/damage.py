"""Rows that are not what their hash names: one bad row is one labelled gap, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from google.protobuf.message import DecodeError
from msgspec.structs import replace

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.message import HASH_BYTES
from contextengine_server.store.rows import MessageRow, SummaryRow

from .message import content_hash

ABSENT = bytes(HASH_BYTES)
"""The hash of a message whose row is not there: nobody knows it."""

_KEPT = (pb.ROLE_USER, pb.ROLE_ASSISTANT, pb.ROLE_SYSTEM, pb.ROLE_DEVELOPER)


def readable(row: MessageRow) -> pb.Message | None:
    """The stored message; None where it cannot be decoded, or is not what its hash names."""
    try:
        message = pb.Message.FromString(row.body)
    except (DecodeError, TypeError):  # a damaged row may hold a text where bytes belong
        return None
    return message if content_hash(message) == row.content_hash else None


def message_of(row: MessageRow) -> pb.Message:
    """The stored message, or the gap in its place."""
    return readable(row) or gap(row)


def gap(row: MessageRow) -> pb.Message:
    """What stands for a message that cannot be read: it says what is missing, and why.

    Of the same role, so that turns stay as they were; what a tool or the harness said becomes a
    harness's own entry, since a result without its call would break the pairs.
    """
    what = "missing" if row.content_hash == ABSENT else "damaged"
    text = f"[message {row.sequence} is {what} in the store and cannot be shown]"
    made = pb.Message(
        id=row.host_id,
        role=next((role for role in _KEPT if role == row.role), pb.ROLE_CUSTOM),
        parts=[pb.Part(text=pb.TextPart(text=text))],
    )
    if made.role == pb.ROLE_CUSTOM:
        made.custom_role = "damaged"
    if row.pinned:
        made.labels["pinned"] = "true"
    return made


def absent(sequence: int, created: int) -> MessageRow:
    """What stands for the row of a message that is not there; `created`: the revision of the row
    before it."""
    return MessageRow(sequence, pb.ROLE_CUSTOM, 0, ABSENT, b"", created)


# Summaries: the hash of a row names what it says and what it was made of.

DAMAGED_SUMMARY = (
    "[the text of this summary is damaged in the store and cannot be shown; the messages that it"
    " covers are as they were: expand it to read them]"
)


def summary_hash(row: SummaryRow) -> bytes:
    """Names a summary's text and its children."""
    digest = blake2b(digest_size=HASH_BYTES)
    for named in (row.text, *row.children):
        encoded = named.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.digest()


def intact(row: SummaryRow) -> bool:
    """True where a summary is what its hash names, or has none."""
    return not row.content_hash or summary_hash(row) == row.content_hash


def as_shown(rows: Sequence[SummaryRow]) -> Sequence[SummaryRow]:
    """A session's summaries with a label in the place of each text that is damaged.

    A damaged one keeps its place, its range and what it stands on, and stays unlike its hash. Where
    it is not known any more what it was made of, that is what was there before it within its range.
    """
    if all(map(intact, rows)):
        return rows
    return [row if intact(row) else _labelled(row, rows) for row in rows]


def _labelled(row: SummaryRow, rows: Sequence[SummaryRow]) -> SummaryRow:
    known = {one.id for one in rows}
    listed = row.children and known.issuperset(row.children)
    children = row.children if listed else _within(row, rows)
    return replace(row, text=DAMAGED_SUMMARY, children=children)


def _within(row: SummaryRow, rows: Sequence[SummaryRow]) -> tuple[str, ...]:
    """The topmost of the summaries that were there before this one, within its range."""
    inner = [
        one
        for one in rows
        if one.created_revision < row.created_revision
        and row.first_sequence <= one.first_sequence
        and one.last_sequence <= row.last_sequence
        and one.id != row.remakes
    ]
    below = {child for one in inner for child in (*one.children, one.remakes)}
    return tuple(one.id for one in inner if one.id not in below)


def successors(rows: Sequence[SummaryRow], later: Sequence[SummaryRow]) -> list[SummaryRow]:
    """Of later summaries those that were made again for some of these because they were unfit to be
    shown: they have their generation, and stand in their place at any time."""
    known = {row.id: row for row in rows}
    found = []
    for row in sorted(later, key=_created):
        old = known.get(row.remakes)
        if old is not None and old.generation == row.generation and row.id not in known:
            known[row.id] = row
            found.append(row)
    return found


def _created(row: SummaryRow) -> int:
    return row.created_revision
