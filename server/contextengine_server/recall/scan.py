"""Going through texts from the newest down with a regular expression, a while at a time.

Where there is an index its passages are gone through, and where the pattern has a plain text in it
only those that may hold it. Without an index the rows themselves are read. A message that is more
than a passage is always read whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic

from msgspec.structs import replace

from contextengine_server.store.rows import MessageRow
from contextengine_server.store.search import Match, SearchSpan

from .archive import Archive
from .patterns import Pattern
from .texts import cuts, searched_text

_AT_ONCE = 256


async def scanned(
    archive: Archive,
    spans: Sequence[SearchSpan],
    pattern: Pattern,
    need: int,
    seconds: float,
    below: int | None,
) -> tuple[list[Match], int | None]:
    """At most `need` messages that match, the newest first, and the sequence below which to go on;
    None: there are no more. `spans` come newest first and do not overlap."""
    found: list[Match] = []
    end = monotonic() + seconds
    for span in spans:
        at = below
        if at is not None and at <= span.first:
            continue
        while True:
            batch, at = await _batch(archive, span, pattern, at)
            for match in await asyncio.to_thread(_matching, pattern, batch):
                found.append(match)
                if len(found) == need:
                    return found, match.place
            if at is None:
                break
            if monotonic() > end:
                return found, at
    return found, None


def _matching(pattern: Pattern, batch: Sequence[Match]) -> list[Match]:
    return [match for match in batch if pattern.first(match.text) is not None]


async def _batch(
    archive: Archive, span: SearchSpan, pattern: Pattern, below: int | None
) -> tuple[list[Match], int | None]:
    """The next messages with their whole texts, and the sequence below which to go on."""
    index = archive.store.index
    if not index.available:
        last = span.last if below is None else min(span.last, below - 1)
        first = max(span.first, last - _AT_ONCE + 1)
        rows = await rows_of(archive, span, first, last)
        asked = [row for row in rows if chosen(row, span)]
        texts = await asyncio.to_thread(_texts, asked)
        batch = [match_of(span, row, text) for row, text in zip(asked, texts, strict=True)]
        return batch[::-1], first if first > span.first else None
    passages, at = await index.scan(span, _AT_ONCE, below=below, containing=pattern.literal)
    batch = []
    for match in passages:
        if any(cuts(match.part, match.text)):
            rows = await rows_of(archive, span, match.place, match.place)
            texts = await asyncio.to_thread(_texts, rows)
            match = replace(match, text="\n".join(texts), part=0)
        batch.append(match)
    return batch, at


async def rows_of(archive: Archive, span: SearchSpan, first: int, last: int) -> list[MessageRow]:
    return await archive.store.messages(
        span.scope, first, last, as_of=span.revision, retired=span.retired
    )


async def rows_at(archive: Archive, span: SearchSpan, places: Sequence[int]) -> list[MessageRow]:
    """The rows of a span at these places, in order."""
    if not places:
        return []
    return await archive.store.messages_at(
        span.scope, places, as_of=span.revision, retired=span.retired
    )


def _texts(rows: Sequence[MessageRow]) -> list[str]:
    return [searched_text(row) for row in rows]


def chosen(row: MessageRow, span: SearchSpan) -> bool:
    if span.roles and row.role not in span.roles:
        return False
    if span.start_ms is not None and (row.time_ms is None or row.time_ms < span.start_ms):
        return False
    return span.end_ms is None or (row.time_ms is not None and row.time_ms < span.end_ms)


def match_of(span: SearchSpan, row: MessageRow, text: str) -> Match:
    return Match(span, row.sequence, 0, text, 0, row.role, row.time_ms, row.host_id)
