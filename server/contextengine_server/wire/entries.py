"""Messages as the core holds them, of what is stored."""

from __future__ import annotations

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.message import Entry
from contextengine_server.errors import CorruptRow
from contextengine_server.store.rows import MessageRow

from .message import read_traits


def stored(row: MessageRow) -> Entry:
    """A message that is stored. Raises CorruptRow."""
    try:
        traits = read_traits(pb.Message.FromString(row.body))
    except ValueError as error:
        raise CorruptRow(
            f"message {row.sequence} cannot be read: restore the database from a backup"
        ) from error
    return Entry(
        row.sequence,
        row.host_id,
        traits,
        row.tokens,
        row.content_hash,
        row.body,
        row.created_revision,
        row.time_ms,
    )
