"""Which headers go on, and which belong to one connection alone (RFC 9110, 7.6.1). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import parse_qsl

from .copy import ENCODINGS

SESSION = b"x-contextengine-session"
"""Names the conversation. It does not go upstream."""
_ONE_HOP = {
    b"connection",
    b"keep-alive",
    b"proxy-authenticate",
    b"proxy-authorization",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
}
_OURS = {b"host", b"content-length", b"accept-encoding", b"expect", SESSION}
"""Said anew for upstream."""
_CREDENTIALS = (b"authorization", b"x-api-key", b"api-key")
GOOGLES_KEY = b"x-goog-api-key"

Headers = Sequence[tuple[bytes, bytes]]


def upstream(given: Headers) -> list[tuple[bytes, bytes]]:
    """A request's headers for upstream."""
    kept = [(name, value) for name, value in _ends(given) if name.lower() not in _OURS]
    return [*kept, (b"accept-encoding", _encodings(value_of(given, b"accept-encoding")))]


def downstream(given: Headers) -> list[tuple[bytes, bytes]]:
    """A reply's headers for the client. Its bytes do not change, nor does their count."""
    return list(_ends(given))


def value_of(given: Headers, name: bytes) -> bytes:
    """A header's value. Empty: it is not there."""
    return b", ".join(value for one, value in given if one.lower() == name)


def is_plain(given: Headers) -> bool:
    """Whether the body is as it is read, and not compressed."""
    return value_of(given, b"content-encoding").strip().lower() in (b"", b"identity")


def credentials(given: Headers, query: bytes = b"") -> tuple[str, ...]:
    """Who asks, as far as the provider is told. `query`: of the address, which may hold Google's
    key."""
    told = [value_of(given, name).decode("latin-1") for name in _CREDENTIALS]
    # Where it is: sessions are named by these, and there were some before it was looked at.
    googles = value_of(given, GOOGLES_KEY).decode("latin-1")
    googles = googles or dict(parse_qsl(query.decode("latin-1"))).get("key", "")
    return (*told, googles) if googles else tuple(told)


def _ends(given: Headers) -> Iterable[tuple[bytes, bytes]]:
    named = {one.strip().lower() for one in value_of(given, b"connection").split(b",")}
    return ((name, value) for name, value in given if name.lower() not in _ONE_HOP | named)


def _encodings(wanted: bytes) -> bytes:
    """Of what the client takes, what is read here as well."""
    asked = {one.partition(b";")[0].strip().lower() for one in wanted.split(b",")}
    both = [one for one in ENCODINGS if one.encode() in asked]
    return ", ".join(both).encode() if both else b"identity"
