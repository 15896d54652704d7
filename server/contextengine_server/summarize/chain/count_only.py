"""The note that always fits: how many messages were compacted, and nothing of what they said."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from contextengine_server.summarize.request import SummaryRequest, SummaryResult

NAME = "count-only"

MAX_TOKENS = 96
"""What the note costs at most, in any encoding shipped. No chunk is worth compacting that does not
cost more.

The note has under 200 characters of words, two times of 20 characters, and two numbers cut at
twelve digits; measured, it stays under 80 tokens. Also the smallest target that a leaf summary can
be given.
"""

_MOST = 10**12 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def count_only(request: SummaryRequest, count: Callable[[str], int]) -> SummaryResult:
    """The note for a request. Pure; never fails; at most MAX_TOKENS."""
    times = [message.time_ms for message in request.messages if message.time_ms is not None]
    span = f" from {_iso(min(times))} to {_iso(max(times))}" if times else ""
    number = len(request.messages)
    noun = ("message", "messages") if request.depth == 0 else ("summary", "summaries")
    text = (
        f"[{_whole(number)} {noun[number != 1]}, {_whole(request.source_tokens)} tokens{span},"
        f" {'was' if number == 1 else 'were'} compacted without a summary. Nothing was deleted: the"
        " originals are stored and can be expanded.]"
    )
    return SummaryResult(text, count(text), NAME, fallback=True)


def _whole(number: int) -> str:
    return f"{min(max(number, 0), _MOST):,}"


def _iso(time_ms: int) -> str:
    try:
        return (_EPOCH + timedelta(milliseconds=time_ms)).strftime("%Y-%m-%dT%H:%M:%SZ")
    except OverflowError:  # a caller's timestamp may say anything
        return "unknown"
