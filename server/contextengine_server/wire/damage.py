"""Rows that are not what their hash names: one bad row is one labelled gap, and no more."""

from __future__ import annotations

from google.protobuf.message import DecodeError

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.store.rows import MessageRow

from .message import content_hash

_KEPT = (pb.ROLE_USER, pb.ROLE_ASSISTANT, pb.ROLE_SYSTEM, pb.ROLE_DEVELOPER)


def readable(row: MessageRow) -> pb.Message | None:
    """The stored message; None where it cannot be decoded, or is not what its hash names."""
    try:
        message = pb.Message.FromString(row.body)
    except DecodeError:
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
    text = f"[message {row.sequence} is damaged in the store and cannot be shown]"
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
