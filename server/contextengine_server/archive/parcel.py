"""A session's rows as one object: gzip of a manifest, one line of JSON, and of the rows behind it.

So `zcat OBJECT | head -1` says what is in it. Rows are written with the names of their fields:
those that a later version adds have defaults, so that an object is read by every later version.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from contextengine_server.store.archives import ArchivedObject
from contextengine_server.store.rows import MessageRow, SessionHead, SummaryRow

FORMAT = "contextengine-session-1"
_AT_ONCE = 256
"""Rows that are encoded in one piece: others have their turn in between."""
_LEVEL = 6
"""Of gzip: 9 takes three times as long here and saves 1 %."""
_LENGTH = 4
"""Bytes that say how long the next piece is."""

T = TypeVar("T")


class ObjectDamaged(Exception):
    """An object is not what was written."""


class Manifest(msgspec.Struct, frozen=True):
    """What an object holds."""

    format: str
    tenant: str
    agent: str
    session: str
    incarnation: str
    revision: int
    messages: int
    summaries: int
    bytes: int
    """Of the rows, as they stand behind this line."""
    sha256: str
    """Of the same."""


def packed(
    head: SessionHead, messages: Sequence[MessageRow], summaries: Sequence[SummaryRow]
) -> bytes:
    """The object of a session."""
    pieces = [*_pieces(messages), *_pieces(summaries)]
    hashed = hashlib.sha256()
    for piece in pieces:
        hashed.update(piece)
    manifest = Manifest(
        FORMAT,
        *head.scope,
        head.incarnation,
        head.revision,
        len(messages),
        len(summaries),
        sum(map(len, pieces)),
        hashed.hexdigest(),
    )
    written = io.BytesIO()
    # No time and no name: equal rows make equal objects.
    with gzip.GzipFile("", "wb", _LEVEL, written, mtime=0) as file:
        file.write(msgspec.json.encode(manifest) + b"\n")
        for piece in pieces:
            file.write(piece)
    return written.getvalue()


def unpacked(
    data: bytes, row: ArchivedObject, head: SessionHead
) -> tuple[list[MessageRow], list[SummaryRow]]:
    """The rows of an object. Raises ObjectDamaged where it is not the one that was written, or is
    of another session."""
    found = hashlib.sha256(data).digest()
    if found != row.digest:
        raise ObjectDamaged(
            f"its {len(data):,} bytes have the SHA-256 {found.hex()}, and what was written were"
            f" {row.size:,} with {row.digest.hex()}"
        )
    try:
        line, _, body = gzip.decompress(data).partition(b"\n")
        manifest = msgspec.json.decode(line, type=Manifest)
        whose = (*head.scope, head.incarnation, head.revision)
        if manifest.format != FORMAT or whose != (
            manifest.tenant,
            manifest.agent,
            manifest.session,
            manifest.incarnation,
            manifest.revision,
        ):
            raise ObjectDamaged(f"its manifest is of another session: {line[:200]!r}")
        rest = iter(_cut(body))
        messages = _rows(rest, manifest.messages, MessageRow)
        summaries = _rows(rest, manifest.summaries, SummaryRow)
    except (OSError, EOFError, zlib.error, msgspec.MsgspecError, StopIteration) as error:
        raise ObjectDamaged(f"it cannot be read: {type(error).__name__}") from error
    return messages, summaries


def _pieces(rows: Sequence[Any]) -> Iterator[bytes]:
    for at in range(0, len(rows), _AT_ONCE):
        piece = msgspec.msgpack.encode(rows[at : at + _AT_ONCE])
        yield len(piece).to_bytes(_LENGTH, "big") + piece


def _cut(body: bytes) -> Iterator[memoryview]:
    at, view = 0, memoryview(body)
    while at < len(body):
        size = int.from_bytes(view[at : at + _LENGTH], "big")
        at += _LENGTH + size
        yield view[at - size : at]


def _rows(pieces: Iterator[memoryview], count: int, kind: type[T]) -> list[T]:
    rows: list[T] = []
    while len(rows) < count:
        rows += msgspec.msgpack.decode(next(pieces), type=list[kind])  # type: ignore[valid-type]
    return rows
