"""Reads a reply beside the client who gets its bytes. Nothing here holds a byte up, and whatever is
wrong here ends in a reply that is not recorded."""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Callable

from .dialects import Dialect, Reply
from .sse import Events

log = logging.getLogger("contextengine_proxy")

ENCODINGS = ("gzip", "deflate")
"""What is read of a reply that is compressed; upstream is not asked for others."""
MOST_BYTES = 64 * 1024 * 1024
"""The longest reply that is read, uncompressed."""


class ReplyCopy:
    """A copy of one reply."""

    def __init__(self, dialect: Dialect, content_type: str, encoding: str) -> None:
        self._dialect = dialect
        self._decode = _decoder(encoding)
        self._reader = dialect.reader() if content_type.startswith("text/event-stream") else None
        self._events = Events()
        self._whole: list[bytes] = []
        self._size = 0
        self._failed = self._decode is None

    def take(self, chunk: bytes) -> None:
        """Bytes as they came."""
        if self._failed or self._decode is None:
            return
        try:
            text = self._decode(chunk)
            self._size += len(text)
            if self._size > MOST_BYTES:
                raise ValueError(f"longer than {MOST_BYTES} bytes")
            if self._reader is None:
                self._whole.append(text)
                return
            for data in self._events.take(text):
                if data != b"[DONE]":
                    self._reader.take(json.loads(data))
        except Exception as error:
            self._fail(error)

    def reply(self, *, ended: bool = True) -> Reply | None:
        """What was answered. None: it is not whole, or not to be read. ended: whether all bytes
        have come; where the client left before, its last ones say whether it is whole."""
        if self._failed:
            return None
        try:
            if self._reader is not None:
                return self._reader.reply()
            return self._dialect.whole(json.loads(b"".join(self._whole)))
        except Exception as error:
            if ended:
                self._fail(error)
            return None

    def text(self) -> str:
        """The beginning of a reply that came at once, for what it says of an error."""
        return b"".join(self._whole)[:4096].decode(errors="replace")

    def _fail(self, error: Exception) -> None:
        # Of anyone's upstream anything may come: it is the client's, and no reason to stop it.
        log.warning("a reply is not recorded: %s: %s", type(error).__name__, str(error)[:200])
        self._failed = True
        self._whole.clear()


def _decoder(encoding: str) -> Callable[[bytes], bytes] | None:
    """None: it cannot be read."""
    match encoding.strip().lower():
        case "" | "identity":
            return bytes
        case "gzip":
            return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress
        case "deflate":
            return zlib.decompressobj().decompress
    return None
