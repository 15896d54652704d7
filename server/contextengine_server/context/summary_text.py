"""How a summary is shown (law 7): a header from its row, a fence that its body cannot close, and
what expands it.

The fence's token is a digest of the body, chosen so that the body does not hold it. So the text
needs no escaping, another body has another fence, and a text that was changed anywhere no longer
verifies.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta

import msgspec

OPENING = "[Summary "
"""How every summary that is shown begins."""

_SEAL = "[by the context engine, "
"""How the last line of an item begins that stands for no message."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,255}")
_TOKEN_DIGITS = 9
"""Of a fence's token. Tokenizers take decimal digits by threes and hexadecimal ones hardly by twos,
and every summary pays twice.

Nothing hangs on how hard a token is to guess: one that the body holds is never taken."""
_TOKENS = 10**_TOKEN_DIGITS
_OPENING = re.compile(rf"<<<untrusted (\d{{{_TOKEN_DIGITS}}})\n", re.ASCII)


class SummaryFacts(msgspec.Struct, frozen=True):
    """What the row of a summary says about it. Nothing here comes from the summary's text."""

    id: str
    depth: int
    descendant_count: int
    """The messages that it covers, through all depths."""
    start_ms: int | None = None
    """The earliest time of a covered message, milliseconds since 1970 UTC; None: no message has
    one."""
    end_ms: int | None = None
    fallback: bool = False
    """True where no summarizer succeeded and the body is a note that counts."""


def render(facts: SummaryFacts, body: str) -> str:
    """The text of a summary as the model sees it. Raises ValueError for an id that cannot stand in
    a header line."""
    return f"{_header(facts)}\n{fenced(body)}\n{_footer(facts)}"


def is_id(text: str) -> bool:
    """True where a text can be the id of a summary that is shown."""
    return _ID.fullmatch(text) is not None


def fenced(body: str) -> str:
    """`body` as data: between two lines that it cannot hold."""
    fence = _fence(body)
    return f"<<<untrusted {fence}\n{body}\n{fence} untrusted>>>"


def sealed(text: str) -> str:
    """A text of ours with a last line that tells it by itself, wherever it comes back."""
    return f"{text}\n{_seal(text)}"


def is_sealed(text: str) -> bool:
    """True for a text that `sealed` made."""
    at = text.rfind("\n")
    return at >= 0 and text.startswith(_SEAL, at + 1) and text[at + 1 :] == _seal(text[:at])


def _seal(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return f"{_SEAL}{_digits(digest)}]"


def verify(facts: SummaryFacts, text: str) -> str | None:
    """None where `text` is a summary shown as law 7 wants it, else what is wrong with it. Never
    raises for a text."""
    header = _header(facts) + "\n"
    if not text.startswith(header):
        return "the header is not what the row says"
    footer = "\n" + _footer(facts)
    if len(text) < len(header) + len(footer) or not text.endswith(footer):
        return "the footer is not what the row says"
    opening = _OPENING.match(text, len(header))
    if opening is None:
        return "the fence does not open behind the header"
    fence = opening[1]
    closing = f"\n{fence} untrusted>>>"
    begin, end = opening.end(), len(text) - len(footer) - len(closing)
    if end < begin or not text.startswith(closing, end):
        return "the fence does not close before the footer"
    body = text[begin:end]
    if fence in body:
        return "the body holds the token of its fence"
    if _fence(body) != fence:
        return "the fence is not that of the body"
    return None


def _fence(body: str) -> str:
    """A token that `body` does not hold, the same for the same body."""
    # A lone surrogate cannot be encoded otherwise; what it is encoded to matters to no one.
    digest = hashlib.sha256(body.encode("utf-8", "surrogatepass"))
    while (token := _digits(digest.digest())) in body:
        digest.update(token.encode())
    return token


def _digits(digest: bytes) -> str:
    return str(int.from_bytes(digest) % _TOKENS).zfill(_TOKEN_DIGITS)


def _header(facts: SummaryFacts) -> str:
    if not is_id(facts.id):
        raise ValueError(
            f"summary id {facts.id!r} must be letters, digits and . _ : / -, at most 256 of them"
        )
    fallback = ", fallback=true" if facts.fallback else ""
    return (
        f"{OPENING}{facts.id}: depth={facts.depth}, descendant_count={facts.descendant_count},"
        f" time={_range(facts)}, trust=untrusted{fallback}]"
    )


def _footer(facts: SummaryFacts) -> str:
    return f"[Expand for details about: its {facts.descendant_count} messages]"


def _range(facts: SummaryFacts) -> str:
    start, end = _iso(facts.start_ms), _iso(facts.end_ms)
    return start if start == end else f"{start}/{end}"


def _iso(time_ms: int | None) -> str:
    if time_ms is None:
        return "unknown"
    try:
        return (_EPOCH + timedelta(milliseconds=time_ms)).strftime("%Y-%m-%dT%H:%M:%SZ")
    except OverflowError:  # before the year 1 or after 9999: a caller's timestamp may say anything
        return "unknown"
