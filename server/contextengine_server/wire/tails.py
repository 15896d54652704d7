"""Which ends of a text that is too long are kept.

After Comis's guard of result sizes (packages/agent/src/safety/tool-result-size-guard.ts): a tail
that says how it ended is worth more. Cuts stand at line ends where one is near.
"""

from __future__ import annotations

import re

LEAST_WEIGHED = 5_000
"""A shorter text is cut in the same way whatever its tail says."""
TAIL = 500
"""Its last characters are looked at."""
KEPT = 0.8
"""Of its room so much is its head and its tail; the rest is for the marker, and for ending at a
line."""
PLAIN, IMPORTANT = 2 / 3, 5 / 8
"""Of that so much is the head."""
NEAR = 0.2
"""A line end counts as near within so much of a head or a tail."""

_TELLS = re.compile(
    r"error|exception|traceback|stack trace|failed|fatal|summary|conclusion|result|total|output:"
    r"|(?:exit|return|status) code",
    re.IGNORECASE,
)


def ends_of(text: str, room: int) -> tuple[int, int]:
    """Of a text that is longer than its room: where its head ends, and where its tail begins."""
    kept = min(int(room * KEPT), len(text))
    head = int(kept * (IMPORTANT if is_important(text) else PLAIN))
    tail = kept - head
    start = _line_end(text, len(text) - tail, int(tail * NEAR))
    return min(_line_end(text, head, int(head * NEAR)), start), start


def is_important(text: str) -> bool:
    """True where the end of a long text says how it ended: an error, a sum, a result, a code, or
    the end of JSON."""
    if len(text) < LEAST_WEIGHED:
        return False
    return text.rstrip().endswith(("}", "]")) or bool(_TELLS.search(text[-TAIL:]))


def _line_end(text: str, at: int, reach: int) -> int:
    """The nearest place behind a line end within reach of a place; that place where there is
    none."""
    before = text.rfind("\n", max(0, at - reach), at) + 1
    behind = text.find("\n", at, at + reach) + 1
    near = [place for place in (before, behind) if place > 0]
    return min(near, key=lambda place: abs(place - at), default=at)
