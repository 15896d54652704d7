"""Sessions and messages on the wire: how requests name and carry them, and what became of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
from google.protobuf.message import Message

from contextengine_proto.v1 import message_pb2
from contextengine_server.api.pipeline.call import Call
from contextengine_server.commands.named_message import Named, Place
from contextengine_server.context.work import Work, at_once
from contextengine_server.errors import ContradictoryFields, InvalidField, TooLarge
from contextengine_server.session.address import Ref
from contextengine_server.session.receipt import Stored
from contextengine_server.slices import in_slices
from contextengine_server.wire.message import Incoming, read

T = TypeVar("T")

LARGE_BYTES = 256 * 1024
"""A request that is read in a thread."""


class ReadLimits(msgspec.Struct, frozen=True):
    """What is refused as too large before it is looked at."""

    max_batch_messages: int
    max_message_bytes: int
    max_session_messages: int


def ref_of(session: message_pb2.SessionRef, field: str = "session") -> Ref:
    """How the request names a session in this field."""
    return Ref(session.agent_id, session.session_id, session.session_key, field)


async def read_in(call: Call, read: Callable[..., T], *args: object) -> T:
    """What `read` makes of the call's request; in a thread where the request is large. Messages are
    hashed and encoded as they are read, and milliseconds a megabyte are too long for everyone else
    on the event loop."""
    return await asyncio.to_thread(read, *args) if len(call.raw) > LARGE_BYTES else read(*args)


async def read_many(
    call: Call,
    limits: ReadLimits,
    messages: Sequence[message_pb2.Message],
    field: str,
    first: int = 0,
) -> list[Incoming]:
    """`incoming` of the call's request, in slices, or in a thread where the request is large."""
    if len(call.raw) > LARGE_BYTES:
        return await asyncio.to_thread(incoming, limits, messages, field, first)
    return await in_slices(_reading(limits, messages, field, first))


def incoming(
    limits: ReadLimits, messages: Sequence[message_pb2.Message], field: str, first: int = 0
) -> list[Incoming]:
    """The messages from index `first` on, read. Raises InvalidField and TooLarge, naming the
    message."""
    return at_once(_reading(limits, messages, field, first))


def _reading(
    limits: ReadLimits, messages: Sequence[message_pb2.Message], field: str, first: int
) -> Work[list[Incoming]]:
    messages = messages[first:]
    limit = limits.max_batch_messages
    if len(messages) > limit:
        raise TooLarge(
            f"{field}: has {len(messages)} messages, at most {limit} are taken at once: send them"
            " in several calls",
            metadata={"limit": str(limit), "size": str(len(messages)), "field": field},
        )
    found: list[Incoming] = []
    for index, message in enumerate(messages, first):
        found.append(incoming_one(limits, message, f"{field}[{index}]"))
        yield
    return found


def incoming_one(limits: ReadLimits, message: message_pb2.Message, field: str) -> Incoming:
    """One message, read."""
    result = read(message, field)
    limit = limits.max_message_bytes
    if len(result.body) > limit:
        raise TooLarge(
            f"{field}: has {len(result.body)} bytes, at most {limit} are taken: store large content"
            " elsewhere and refer to it",
            metadata={"limit": str(limit), "size": str(len(result.body)), "field": field},
        )
    return result


def request_id(value: str, field: str = "request_id") -> str:
    """A request id, checked."""
    if len(value.encode()) > 256:
        raise InvalidField(field, "is longer than 256 bytes: shorten it")
    if "\0" in value:
        # Not every database keeps one in a text.
        raise InvalidField(field, "holds a NUL character: remove it")
    return value


def place_in(
    request: Message, which: str, *, within: str = "", begins: bool = False
) -> Place | None:
    """A message as `WHICH_sequence` or `WHICH_message_id` of a request names it; None where neither
    does. `within`: the path of the fields. `begins`: see Named. Raises ContradictoryFields,
    InvalidField."""
    by_sequence, by_id = f"{which}_sequence", f"{which}_message_id"
    id = request_id(getattr(request, by_id), within + by_id)
    if by_sequence not in {field.name for field, _ in request.ListFields()}:
        return Named(id, within + by_id, begins) if id else None
    if id:
        raise ContradictoryFields(
            [within + by_sequence, within + by_id], "name the message by its sequence or by its id"
        )
    sequence: int = getattr(request, by_sequence)
    return sequence


def stored_message(item: Stored) -> message_pb2.StoredMessage:
    """What became of a message."""
    return message_pb2.StoredMessage(
        index=item.index,
        id=item.id,
        sequence=item.sequence,
        disposition=int(item.disposition),  # type: ignore[arg-type]
        content_hash=item.hash,
        tokens=item.tokens,
        conflicting_hash=item.conflicting,
    )
