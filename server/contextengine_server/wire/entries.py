"""Messages as the core holds them: made here of what arrived, and of what is stored."""

from __future__ import annotations

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.message import Entry
from contextengine_server.errors import CorruptRow
from contextengine_server.store.rows import MessageRow

from .message import Incoming, read_traits


def arrived(message: Incoming, sequence: int, revision: int, live_index: int = -1) -> Entry:
    """A message that arrived. `revision`: the one that stores it, or the next one. `live_index`:
    its place in a list that is not stored."""
    return Entry(
        sequence,
        message.id,
        message.traits,
        message.tokens,
        message.hash,
        message.body,
        revision,
        message.time_ms,
        live_index,
    )


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
