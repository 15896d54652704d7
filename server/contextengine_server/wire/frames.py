"""Item frames: an entry of `AssembleResponse.items`, encoded by hand around a message's own bytes.

A frame holds its field tag and length, so that joining frames makes a reply, and a message that is
stored is never decoded to be sent. A test holds the frames against the generated code.
"""

from __future__ import annotations

from hashlib import blake2b

from contextengine_proto.v1 import assemble_pb2
from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.message import Form

_ITEMS = assemble_pb2.AssembleResponse.DESCRIPTOR.fields_by_name["items"].number
_ITEM = {name: field.number for name, field in pb.Item.DESCRIPTOR.fields_by_name.items()}
_ORIGIN = {name: field.number for name, field in pb.Origin.DESCRIPTOR.fields_by_name.items()}
HASH_BYTES = 16
_SHORT = [bytes((value,)) for value in range(0x80)]


def varint(value: int) -> bytes:
    """A non-negative integer in the wire's base-128 form."""
    if value < 0x80:
        return _SHORT[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def block(number: int, payload: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def integer(number: int, value: int) -> bytes:
    """An integer field; nothing for 0, as the generated code has it."""
    return varint(number << 3) + varint(value) if value else b""


_ID = varint(_ITEM["id"] << 3 | 2)
_ORIGIN_TAG = varint(_ITEM["origin"] << 3 | 2)
_HASH = varint(_ITEM["content_hash"] << 3 | 2) + varint(HASH_BYTES)
_MESSAGE = varint(_ITEM["message"] << 3 | 2)
_ITEMS_TAG = varint(_ITEMS << 3 | 2)


def origin_sequence(sequence: int) -> bytes:
    """The origin of a stored message. Presence matters: a oneof member is written even when 0."""
    return varint(_ORIGIN["sequence"] << 3) + varint(sequence)


def origin_live(index: int) -> bytes:
    """The origin of a message of the call's `live` list that is not stored."""
    return varint(_ORIGIN["live_index"] << 3) + varint(index)


def origin_summary(summary_id: str) -> bytes:
    """The origin of a summary."""
    return block(_ORIGIN["summary_id"], summary_id.encode())


def origin_synthetic(reason: str) -> bytes:
    """The origin of an item that the service made up."""
    return block(_ORIGIN["synthetic"], reason.encode())


def frame(
    item_id: str,
    origin: bytes,
    content_hash: bytes,
    tokens: int,
    form: Form,
    body: bytes,
    summary: bytes = b"",
) -> bytes:
    """One entry of `items`, tag and length included. `content_hash` has 16 bytes; `body` is an
    encoded Message."""
    encoded_id = item_id.encode()
    before = b"".join(
        (
            _ID + varint(len(encoded_id)) + encoded_id if encoded_id else b"",
            _ORIGIN_TAG + varint(len(origin)) + origin,
            _HASH + content_hash,
            integer(_ITEM["tokens"], tokens),
            integer(_ITEM["form"], int(form)),
            _MESSAGE + varint(len(body)),
        )
    )
    after = block(_ITEM["summary"], summary) if summary else b""
    # A body may have megabytes: it is copied once.
    return b"".join((_ITEMS_TAG, varint(len(before) + len(body) + len(after)), before, body, after))


def shown_hash(content: bytes, origin: bytes, form: Form) -> bytes:
    """The hash of what is shown where it is not a message verbatim."""
    return blake2b(content + b"\x1f" + origin + bytes([int(form)]), digest_size=HASH_BYTES).digest()


def item_of(encoded: bytes) -> pb.Item:
    """The item in a frame."""
    response = assemble_pb2.AssembleResponse.FromString(encoded)
    return response.items[0]
