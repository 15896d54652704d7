"""The epoch: names everything that decides how an assembly begins. Derived, never counted.

An epoch string holds a digest of each deciding part, so that two epochs tell which part differs
without any memory. Equal epochs: the earlier assembly is a prefix of the later (law 10).
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from hashlib import blake2b

import msgspec

_VERSION = "e1"
_BYTES = 6


class Cause(IntEnum):
    """Why an epoch is another one, by the wire's numbers."""

    SAME = 0
    CUT = 1
    MASKED = 2
    COMPACTED = 3
    REWOUND = 4
    RESET = 5
    LATE_RESULT = 6
    BUDGET = 7
    ENGINE = 8
    MODEL = 9
    CONFIG = 10
    UNKNOWN = 11


class EpochParts(msgspec.Struct, frozen=True):
    """The deciding parts, in the order in which a change of several is named."""

    session: str
    """Incarnation and newest reset."""
    engine: str
    config: str
    model: str
    rewound: str
    compacted: str
    """The view's summaries, whether they are shown or not."""
    budget: str
    """The budget's cell."""
    late: str
    """The newest late result that was placed."""
    masked: str
    """The forms given."""
    cut: str
    """The cut point, and what stands before it: the summaries shown, and what law 4 keeps."""


_CAUSES: tuple[Cause, ...] = (
    Cause.RESET,
    Cause.ENGINE,
    Cause.CONFIG,
    Cause.MODEL,
    Cause.REWOUND,
    Cause.COMPACTED,
    Cause.BUDGET,
    Cause.LATE_RESULT,
    Cause.MASKED,
    Cause.CUT,
)
_NAMES = EpochParts.__struct_fields__


@lru_cache(maxsize=4096)  # the same at every step of a session until its beginning changes
def epoch(parts: EpochParts) -> str:
    """The epoch's string: opaque to clients, six bytes a part."""
    digests = b"".join(digest([getattr(parts, name)]) for name in _NAMES)
    return f"{_VERSION}.{base64.urlsafe_b64encode(digests).decode().rstrip('=')}"


def digest(values: Sequence[object]) -> bytes:
    """Six bytes that name a sequence of values."""
    return blake2b(
        "\x1f".join(map(str, values)).encode("utf-8", "surrogatepass"), digest_size=_BYTES
    ).digest()


def cause(known: str, now: str) -> Cause:
    """Why `now` is another epoch than `known`; UNKNOWN where `known` is not one of ours."""
    if known == now:
        return Cause.SAME
    before, after = _split(known), _split(now)
    if before is None or after is None:
        return Cause.UNKNOWN
    for reason, old, new in zip(_CAUSES, before, after, strict=True):
        if old != new:
            return reason
    return Cause.UNKNOWN


def has_same_rows(known: str, now: str) -> bool:
    """False where rows that `known` was made of may have left the session by `now`: it was reset or
    made anew, or the harness went back. A message that says what one of them said is another."""
    before, after = _split(known), _split(now)
    if before is None or after is None:
        return True
    parts = zip(_CAUSES, before, after, strict=True)
    return all(old == new for part, old, new in parts if part in (Cause.RESET, Cause.REWOUND))


def _split(value: str) -> list[bytes] | None:
    version, _, text = value.partition(".")
    if version != _VERSION:
        return None
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError:
        return None
    if len(raw) != _BYTES * len(_NAMES):
        return None
    return [raw[at : at + _BYTES] for at in range(0, len(raw), _BYTES)]
