"""Ids that make writing safe to send twice."""

from __future__ import annotations

from collections.abc import Iterable

import uuid_utils

from .types import Message


def new_id() -> str:
    """A UUIDv7 (RFC 9562): 36 characters, rising with time, also within a millisecond of one
    process."""
    return str(uuid_utils.uuid7())


def with_ids(messages: Iterable[Message]) -> list[Message]:
    """Copies of `messages`, those without an id with a new one.

    Calls set missing ids by themselves, but on copies: a message that is handed over twice without
    an id is stored twice. Whoever keeps messages to send them again gives them their ids once,
    here.
    """
    return [_with_id(message) for message in messages]


def _with_id(message: Message) -> Message:
    copy = Message()
    copy.CopyFrom(message)
    if not copy.id:
        copy.id = new_id()
    return copy
