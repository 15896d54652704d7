"""The turns beside a message, which no look-up brought."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from contextengine_server.store.rows import MessageRow
from contextengine_server.store.search import Match, SearchSpan

from .archive import Archive
from .scan import chosen, match_of, rows_at
from .snippets import beginnings
from .texts import beside_loop, searched_text

TURN_CHARS = 240
"""How much of a neighbouring turn is shown beside a hit."""


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
        for turn in await _turns(archive, span, [*places]):
            made[span, turn.sequence] = turn
    return [(made.get((span, place - 1)), made.get((span, place + 1))) for span, place in hits]


async def _turns(archive: Archive, span: SearchSpan, places: Sequence[int]) -> list[RecalledTurn]:
    """What stands at these places, whatever is asked for of what is found. The index has it as
    text; what it does not hold is read from the rows."""
    anyones = replace(span, roles=(), start_ms=None, end_ms=None)
    found = await archive.store.index.beginnings(anyones, places)
    held = {match.place for match in found}
    rest = [place for place in places if place not in held]
    found += (await matches_at(archive, [anyones], rest)).values()
    snippets = beginnings([match.text for match in found], archive.redact, TURN_CHARS)
    return [
        RecalledTurn(match.place, match.role, said)
        for match, said in zip(found, snippets, strict=True)
    ]


def _searched(rows: Sequence[MessageRow]) -> list[str]:
    return [searched_text(row) for row in rows]
