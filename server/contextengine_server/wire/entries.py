"""Messages as the core holds them, of what is stored."""

from __future__ import annotations

from contextengine_server.context.message import Entry
from contextengine_server.store.rows import MessageRow

from .damage import gap, readable
from .message import read_traits


def stored(row: MessageRow) -> Entry:
    """A message that is stored, or the gap in its place. A gap keeps the tokens of its row, which
    running sums stand on."""
    message = readable(row)
    body, damaged = row.body, message is None
    if message is None:
        message = gap(row)
        body = message.SerializeToString()
    traits = read_traits(message)
    return Entry(
        row.sequence,
        row.host_id,
        traits,
        row.tokens,
        row.content_hash,
        body,
        row.created_revision,
        row.time_ms,
        damaged=damaged,
    )
