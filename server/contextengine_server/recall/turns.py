"""The turns beside a message: read from the rows, since no look-up brought them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from contextengine_server.store.rows import MessageRow
from contextengine_server.store.search import Match, SearchSpan

from .archive import Archive
from .scan import chosen, match_of, rows_at
from .snippets import TurnBeginnings
from .texts import beside_loop, searched_text


class RecalledTurn(msgspec.Struct, frozen=True):
    """A message beside one that was found."""

    sequence: int
    role: int
    snippet: str
    """How it begins, redacted and fenced."""


async def matches_at(
    archive: Archive, spans: Sequence[SearchSpan], places: Sequence[int]
) -> dict[int, Match]:
    """Messages of one history as matches, by place; none of what is not asked for."""
    found: dict[int, Match] = {}
    for span in spans:
        within = [place for place in places if span.first <= place <= span.last]
        rows = [row for row in await rows_at(archive, span, within) if chosen(row, span)]
        texts = await beside_loop(sum(len(row.body) for row in rows), _searched, rows)
        for row, text in zip(rows, texts, strict=True):
            found[row.sequence] = match_of(span, row, text)
    return found


async def turns_beside(
    archive: Archive, hits: Sequence[tuple[SearchSpan, int]]
) -> list[tuple[RecalledTurn | None, RecalledTurn | None]]:
    """For each message by its place in a span: the turns before and behind it, of the same span;
    None where there is none, or where it is among these messages itself."""
    shown = {(span.scope, place) for span, place in hits}
    wanted: dict[SearchSpan, dict[int, None]] = {}
    for span, place in hits:
        for at in (place - 1, place + 1):
            if span.first <= at <= span.last and (span.scope, at) not in shown:
                wanted.setdefault(span, {})[at] = None
    made: dict[tuple[SearchSpan, int], RecalledTurn] = {}
    for span, places in wanted.items():
        rows = await rows_at(archive, span, [*places])
        read = partial(_turns, rows, archive.beginnings)
        for turn in await beside_loop(sum(len(row.body) for row in rows), read):
            made[span, turn.sequence] = turn
    return [(made.get((span, place - 1)), made.get((span, place + 1))) for span, place in hits]


def _turns(rows: Sequence[MessageRow], beginnings: TurnBeginnings) -> list[RecalledTurn]:
    return [
        RecalledTurn(row.sequence, row.role, said)
        for row, said in zip(rows, beginnings.of(rows), strict=True)
    ]


def _searched(rows: Sequence[MessageRow]) -> list[str]:
    return [searched_text(row) for row in rows]
