"""What became of a write, and the identity of requests that are answered once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b

import msgspec
import orjson

from contextengine_server.errors import FieldViolation, MessageConflict, RequestIdReused, TooLarge
from contextengine_server.store.rows import StoredReply
from contextengine_server.wire.message import Incoming


class Disposition(IntEnum):
    """What became of a message, by the wire's numbers."""

    STORED = 1
    DUPLICATE = 2
    CONFLICT = 3


class Stored(msgspec.Struct, frozen=True):
    """What became of one message."""

    index: int
    id: str
    sequence: int
    disposition: Disposition
    hash: bytes
    tokens: int
    conflicting: bytes = b""


@dataclass(slots=True)
class Written:
    """What became of a write."""

    stored: list[Stored]
    revision: int
    repeated: bool = False
    """True where the request id was known: this is what was answered before."""
    created: bool = False


class Request(msgspec.Struct, frozen=True):
    """A request that is answered once, by its id."""

    id: str
    digest: bytes
    field: str = "request_id"
    """Where in the request the id stands, for errors."""


def request_of(
    request_id: str,
    rpc: str,
    messages: Sequence[Incoming],
    salt: bytes = b"",
    field: str = "request_id",
) -> Request | None:
    """The request's identity: its id, and a digest of what it asks."""
    if not request_id:
        return None
    whole = blake2b(rpc.encode() + b"\x1f" + salt, digest_size=16)
    for message in messages:
        whole.update(message.hash)
        whole.update(message.id.encode())
    return Request(f"{rpc}:{request_id}", whole.digest(), field)


def kept(written: Written) -> bytes:
    """A receipt as it is stored under its request."""
    rows = [
        (s.index, s.id, s.sequence, int(s.disposition), s.hash.hex(), s.tokens, s.conflicting.hex())
        for s in written.stored
    ]
    return orjson.dumps({"revision": written.revision, "stored": rows})


def checked(known: StoredReply, request: Request) -> StoredReply:
    """What was answered before. Raises RequestIdReused where another request had the id."""
    if known.digest != request.digest:
        raise RequestIdReused(
            f"{request.field}: was used for another request: every request needs an id of its own",
            violations=[FieldViolation(request.field, "was used for another request")],
        )
    return known


def repeated(known: StoredReply, request: Request) -> Written:
    """The receipt of a request that came before. Raises RequestIdReused."""
    raw = orjson.loads(checked(known, request).reply)
    stored = [
        Stored(
            index,
            host_id,
            sequence,
            Disposition(how),
            bytes.fromhex(digest),
            tokens,
            bytes.fromhex(other),
        )
        for index, host_id, sequence, how, digest, tokens, other in raw["stored"]
    ]
    return Written(stored, raw["revision"], repeated=True)


def conflict(field_name: str, index: int, message: Incoming, stored_hash: bytes) -> MessageConflict:
    """A message whose id is stored with other content."""
    return MessageConflict(
        f"{field_name}[{index}]: id {message.id!r} is stored with other content: send an edit under"
        " a new id",
        violations=[FieldViolation(f"{field_name}[{index}].id", "is stored with other content")],
        metadata={
            "index": str(index),
            "id": message.id,
            "stored_hash": stored_hash.hex(),
            "sent_hash": message.hash.hex(),
        },
    )


def over_cap(used: int, cap: int) -> TooLarge:
    """A tenant that takes more of the disk than it may."""
    return TooLarge(
        f"the tenant's sessions take {used:,} bytes of the disk, at most {cap:,} are allowed:"
        " delete sessions, or ask the operator for more (retention.caps)",
        metadata={"field": "retention.caps", "limit": str(cap), "used": str(used)},
    )
