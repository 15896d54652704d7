"""The turns beside a message: read from the rows, since no look-up brought them."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Sequence

import msgspec

from contextengine_server.store.search import Match, SearchSpan

from .archive import Archive
from .scan import chosen, match_of, rows_of
from .snippets import beginning
from .texts import searched_text

TURN_CHARS = 240
"""How much of a neighbouring turn is shown beside a hit."""


class RecalledTurn(msgspec.Struct, frozen=True):
    """A message beside one that was found."""

    sequence: int
    role: int
    snippet: str
    """How it begins, redacted and fenced."""


async def row_at(archive: Archive, spans: Sequence[SearchSpan], place: int) -> Match | None:
    """A message of these spans as a match; None where it is not what is asked for."""
    span = next(span for span in spans if span.first <= place <= span.last)
    for row in await rows_of(archive, span, place, place):
        if chosen(row, span):
            return match_of(span, row, await asyncio.to_thread(searched_text, row))
    return None


async def turns_beside(
    archive: Archive, span: SearchSpan, place: int, shown: Container[int]
) -> tuple[RecalledTurn | None, RecalledTurn | None]:
    """The turns before and behind a message, of the same span; None where there is none, or where
    it is `shown` already."""
    if place - 1 in shown and place + 1 in shown:
        return None, None
    rows = await rows_of(archive, span, max(place - 1, span.first), min(place + 1, span.last))
    beside = [row for row in rows if row.sequence != place and row.sequence not in shown]
    made = await asyncio.to_thread(
        lambda: {
            row.sequence: RecalledTurn(
                row.sequence,
                row.role,
                beginning(searched_text(row), archive.redact, TURN_CHARS),
            )
            for row in beside
        }
    )
    return made.get(place - 1), made.get(place + 1)
