"""When messages were made of which their host says nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence

from google.protobuf.timestamp_pb2 import Timestamp

from .types import ROLE_ASSISTANT, Message


def timed(new: Sequence[Message], known: int) -> list[Message]:
    """A host's newest messages, those without a time as of now, by this machine's clock: they were
    made since it handed over the ones before them. Summaries say of when they are by it.

    known: how many stand before them. 0, and a reply is among the new ones: the list is seen for
    the first time and is of nobody knows when, so it stays as it is.
    """
    if not known and any(message.role == ROLE_ASSISTANT for message in new):
        return list(new)
    now = Timestamp()
    now.FromMilliseconds(int(time.time() * 1000))
    return [message if message.HasField("timestamp") else _at(message, now) for message in new]


def _at(message: Message, now: Timestamp) -> Message:
    copy = Message()
    copy.CopyFrom(message)
    copy.timestamp.CopyFrom(now)
    return copy
