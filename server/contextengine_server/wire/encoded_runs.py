"""Bytes that stand in a text as base64: data URIs and long runs, shown as what they are. A model
reads nothing in them, and a picture of a megabyte would take the room of a whole session.

What counts as one is a function of the text alone, so a message is shown in the same way wherever
and whenever it is. Words, hex, hashes, tokens of access (JWT) and code are left alone: a run
outside of a data URI is long, mixes upper case, lower case and digits as encoded bytes do, and
decodes.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from hashlib import sha256

MIN_URI_CHARS = 512
"""Data URIs with less are left alone: an icon, say."""
MIN_RUN_CHARS = 2_048
"""Other runs with less are left alone."""
MIN_DISTINCT = 32
"""Characters that a run outside of a data URI has at least; random bytes soon have all 64."""
HASH_CHARS = 16
"""Of the hex digits of a SHA-256, so many are shown."""

_WINDOW = 256
"""Whatever is long enough holds a whole window that begins at a multiple of its length."""
_LINES = MIN_RUN_CHARS // 64
_FOUND = re.compile(
    rf"data:(?P<media>[\w.+-]+/[\w.+-]+)?(?:;[\w.+-]+=[\w.+-]+)*;base64,"
    rf"(?P<uri>[\w+/-]{{{MIN_URI_CHARS},}}={{0,2}})"
    r"|(?<![\w+/=-])(?P<run>"
    rf"[A-Za-z0-9+/]{{{MIN_RUN_CHARS},}}={{0,2}}(?![\w+/=-])"
    # As mail, PEM and base64(1) wrap it. A last line of less is taken where padding shows its end.
    rf"|(?:[A-Za-z0-9+/]{{64,128}}\r?\n){{{_LINES},}}(?:[A-Za-z0-9+/]{{0,128}}={{1,2}})?"
    r")",
    re.ASCII,
)
_FILLED = re.compile(rb"[A-Za-z0-9+/=\r\n_-]{%d}" % _WINDOW)
_BEGINNINGS = (
    ("iVBORw0KGgo", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lGOD", "image/gif"),
    ("UklGR", "image/webp"),
    ("JVBERi0", "application/pdf"),
    ("UEsDB", "application/zip"),
    ("H4sI", "application/gzip"),
)
"""How files of a kind begin, encoded."""
_UNKNOWN = "application/octet-stream"
_JSON_TOKEN = "eyJ"
_URL_SAFE = str.maketrans("-_", "+/", "\r\n")


def may_hold_runs(body: bytes) -> bool:
    """False for most texts, and cheap: encoded as UTF-8, alone or among other bytes, there is no
    stretch of which a run could be made."""
    return any(_FILLED.match(body, at) for at in range(0, len(body) - _WINDOW + 1, _WINDOW))


def without_runs(text: str, back: str) -> str:
    """The text with a marker in place of each run: its media type, its size and hash decoded, and
    how to get it back (`back`). The same text where it has none."""
    return _FOUND.sub(lambda found: _marker(found, back), text)


def _marker(found: re.Match[str], back: str) -> str:
    uri, run = found["uri"], found["run"]
    encoded: str = uri or run
    if run is not None and not _mixed(run):
        return found[0]
    characters = encoded.translate(_URL_SAFE).rstrip("=")
    if len(characters) % 4 == 1:  # no number of bytes is as long as that
        return found[0]
    try:
        data = b64decode(characters + "=" * (-len(characters) % 4), validate=True)
    except Error:
        return found[0]
    media = found["media"] or next(
        (media for begins, media in _BEGINNINGS if encoded.startswith(begins)), _UNKNOWN
    )
    digest = sha256(data).hexdigest()[:HASH_CHARS]
    ending = "\n" if encoded.endswith("\n") else ""
    return f"[{media}, {len(data):,} bytes, sha256 {digest}: left out here; {back}]{ending}"


def _mixed(run: str) -> bool:
    """True where it looks like encoded bytes, and like no word, number or token of access."""
    if run.startswith(_JSON_TOKEN):
        return False
    seen = set(run)
    return (
        len(seen) >= MIN_DISTINCT
        and any(map(str.isupper, seen))
        and any(map(str.islower, seen))
        and any(map(str.isdigit, seen))
    )
