"""Many messages as calls of a size that servers take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .types import Message

MOST = 100
"""Messages of one call."""
MOST_BYTES = 1024 * 1024
"""Bytes of the messages of one call, where it has several: what a proxy on the way lets through
that is set to nothing (nginx's `client_max_body_size`), and far below the server's own limit."""


def batches(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """The messages in order, some at a time: at most a hundred, and a mebibyte or one that is
    larger."""
    batch: list[Message] = []
    size = 0
    for message in messages:
        more = message.ByteSize()
        if batch and (len(batch) == MOST or size + more > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += more
    if batch:
        yield batch
