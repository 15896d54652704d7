"""Texts as hosts count and trim them: UTF-16 units where the host is JavaScript, code points where
it is Rust."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import orjson

# What JavaScript's trim takes away: it has U+FEFF and U+00A0, and not U+001C to U+001F or U+0085,
# which Python's strip has.
_JS_SPACE = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)


def js_trim(text: str) -> str:
    """`text.trim()` of JavaScript."""
    return text.strip(_JS_SPACE)


def js_trim_start(text: str) -> str:
    """`text.trimStart()` of JavaScript."""
    return text.lstrip(_JS_SPACE)


def units(text: str) -> int:
    """The length in UTF-16 units, which is JavaScript's `length`."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def utf8(text: str) -> int:
    """The length in bytes."""
    return len(text) if text.isascii() else len(text.encode())


def head(text: str, limit: int) -> str:
    """The beginning, at most `limit` UTF-16 units, no pair split."""
    if text.isascii():
        return text[:limit]
    return text.encode("utf-16-le", "surrogatepass")[: 2 * limit].decode("utf-16-le", "ignore")


def tail(text: str, limit: int) -> str:
    """The end, at most `limit` UTF-16 units, no pair split."""
    if limit <= 0:
        return ""
    if text.isascii():
        return text[-limit:]
    return text.encode("utf-16-le", "surrogatepass")[-2 * limit :].decode("utf-16-le", "ignore")


def lone_surrogate(text: str) -> int:
    """Where the first half of a pair without its other half stands; -1: nowhere."""
    if text.isascii():
        return -1
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return -1


def sha256(text: str | bytes) -> str:
    """The digest in hex."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: one text for one value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def well_formed(value: Any) -> Any:
    """The value with U+FFFD for lone surrogates, which JSON can escape and no UTF-8 wire takes."""
    if isinstance(value, str):
        return value if lone_surrogate(value) < 0 else value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [well_formed(inner) for inner in value]
    if isinstance(value, dict):
        return {well_formed(key): well_formed(inner) for key, inner in value.items()}
    return value


def dumped(value: Any) -> bytes:
    """The value as JSON, in its own order and without spaces."""
    try:
        return orjson.dumps(value)
    except TypeError:  # integers of more than 64 bits, and lone surrogates, which UTF-8 cannot say
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "replace"
        )
