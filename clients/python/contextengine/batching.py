"""Many messages as calls of a size that servers take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .types import Message

MOST = 100
"""Messages of one call."""
MOST_BYTES = 1024 * 1024
"""Bytes of the messages of one call, where it has several: what a proxy on the way lets through
that is set to nothing (nginx's `client_max_body_size`), and far below the server's own limit."""
LARGEST = 32 * 1024 * 1024
"""Bytes of one message that a server takes, where nobody set `sessions.max_message_bytes`."""


def batches(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """The messages in order, some at a time: at most a hundred, and a mebibyte or one that is
    larger. One that is too large with its original, which says most of it a second time (a document
    of 20 MB), goes without: refused each time, it would keep all behind it from being stored."""
    batch: list[Message] = []
    size = 0
    for message in messages:
        more = message.ByteSize()
        if more > LARGEST:
            message = _without_native(message)
            more = message.ByteSize()
        if batch and (len(batch) == MOST or size + more > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += more
    if batch:
        yield batch


def _without_native(message: Message) -> Message:
    """The message without its original: what its parts say, and no more."""
    left = Message()
    left.CopyFrom(message)
    left.ClearField("native")
    return left
