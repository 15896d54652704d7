"""Expand: the summaries and messages under a summary, or messages by their sequences, within a
token cap, in pages.

What is asked for is laid out as a list of units, each a summary or the messages of a leaf, which
takes no message to be read. A page goes on in the list where the last one ended. A message that
alone exceeds the cap is answered in pieces, each of which says which part of the message it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.context.summary_text import fenced
from contextengine_server.store.rows import MessageRow, SessionHead, SummaryRow

from .archive import Archive
from .coverage import children_of, covered, summary_of
from .lineage import Lineage, SummaryAt, lineage_of, rows_between
from .pages import digest_of, numbers_in, token_of
from .snippets import Redact
from .texts import text_of_row

DEFAULT_TOKENS = 4_000
"""What a page holds where nothing is said: the default of maxExpandTokens."""
MAX_TOKENS = 50_000
"""The most that one page may hold, whatever is asked for: the upper end of maxExpandTokens."""
MAX_DEPTH = 10
MAX_IDS = 1_000
"""Summaries or sequences in one request."""

MIN_TOKENS = 256
"""The least that a page may be asked to hold: room for a piece of anything."""

_CHARS_A_TOKEN = 4
"""Characters of a token, about: where a piece of a long message is first tried to end."""
_SMALLEST = 32
"""Characters that fit any page."""


class Wanted(msgspec.Struct, frozen=True):
    """What to bring back."""

    summary_ids: Sequence[str] = ()
    sequences: Sequence[int] = ()
    max_tokens: int = DEFAULT_TOKENS
    depth: int = 1
    """How many levels of summaries to open."""
    messages: bool = False
    """True: the messages under the leaves that are reached. Those of a leaf that is asked for
    itself come in any case: nothing else lies under it."""
    page: str = ""
    retired: bool = True
    """True: also rows that have left the view."""


class Piece(msgspec.Struct, frozen=True):
    """A part of a text that is too long for one page."""

    text: str
    first: int
    """The first of its characters, from 0."""
    length: int
    """The characters of the whole."""

    @property
    def end(self) -> int:
        """Behind its last character."""
        return self.first + len(self.text)

    def shown(self, redact: Redact = list) -> str:
        """The part as data, and which part it is."""
        place = f"characters {self.first + 1:,} to {self.end:,} of {self.length:,}"
        return f"[{place}; the next page goes on]\n{fenced(redact([self.text])[0])}"


class Brought(msgspec.Struct, frozen=True):
    """One summary or message."""

    tokens: int
    scope: Scope
    summary: SummaryRow | None = None
    message: MessageRow | None = None
    piece: Piece | None = None


@dataclass(slots=True)
class Expansion:
    """A page of what was brought back, in order."""

    items: list[Brought] = field(default_factory=list)
    tokens: int = 0
    next_page: str = ""
    """Where the next page begins; empty: there is none."""
    missing: int = 0
    """How many ids are not there."""


class _Unit(msgspec.Struct, frozen=True):
    """A summary to show, or the messages of a leaf, or messages by their sequences."""

    one: SummaryAt | None = None
    open: bool = False
    run: tuple[int, int] = (0, 0)


async def expand(archive: Archive, head: SessionHead, wanted: Wanted) -> Expansion:
    """Brings back a page. Raises InvalidField for a page that is not the request's."""
    digest = digest_of(
        *head.scope,
        head.incarnation,
        *map(list, (wanted.summary_ids, wanted.sequences)),
        wanted.depth,
        wanted.messages,
    )
    at, skip, start = numbers_in(wanted.page, digest, 3) if wanted.page else (0, 0, 0)
    lineage = await lineage_of(archive.store, head, archive.inherits, retired=wanted.retired)
    answer = Expansion()
    units = await _units(archive, lineage, wanted, answer)
    left = wanted.max_tokens
    for index in range(at, len(units)):
        number = 0
        async for one in _content(archive, lineage, units[index]):
            number += 1
            if index == at and number <= skip:
                continue
            if start or (one.tokens > left and not answer.items):
                one = await _cut(archive, one, start, left)
            elif one.tokens > left:
                answer.next_page = token_of(digest, (index, number - 1, 0))
                return answer
            start = 0
            answer.items.append(one)
            answer.tokens += one.tokens
            left -= one.tokens
            if one.piece is not None and one.piece.end < one.piece.length:
                answer.next_page = token_of(digest, (index, number - 1, one.piece.end))
                return answer
    return answer


async def _units(
    archive: Archive, lineage: Lineage, wanted: Wanted, answer: Expansion
) -> list[_Unit]:
    units: list[_Unit] = []
    shown: set[str] = set()
    opened: set[str] = set()

    async def open_up(one: SummaryAt, depth: int, asked: bool) -> None:
        if one.row.id in opened:
            return
        opened.add(one.row.id)
        children = await children_of(archive, lineage, one)
        # A summary of depth 0 may have taken the place of older ones, its children, and covers
        # messages that none of them covers: its messages are opened as well.
        if (not children or one.row.depth == 0) and (asked or wanted.messages):
            units.append(_Unit(one, open=True))
        for child in children:
            if child.row.id not in shown:
                shown.add(child.row.id)
                units.append(_Unit(child))
            if depth > 1:
                await open_up(child, depth - 1, False)

    for summary_id in dict.fromkeys(wanted.summary_ids):
        one = await summary_of(archive, lineage, summary_id)
        if one is None:
            answer.missing += 1
        else:
            await open_up(one, wanted.depth, True)
    runs = _runs(wanted.sequences)
    found = 0
    for first, last in runs:
        async for _, rows in rows_between(archive.store, lineage, first, last):
            found += len(rows)
    answer.missing += len(set(wanted.sequences)) - found
    return [*units, *(_Unit(run=run) for run in runs)]


def _runs(sequences: Sequence[int]) -> list[tuple[int, int]]:
    """Sequences as ranges, in order."""
    runs: list[tuple[int, int]] = []
    for sequence in sorted(set(sequences)):
        if runs and runs[-1][1] == sequence - 1:
            runs[-1] = runs[-1][0], sequence
        else:
            runs.append((sequence, sequence))
    return runs


async def _content(archive: Archive, lineage: Lineage, unit: _Unit) -> AsyncIterator[Brought]:
    """What a unit brings, one by one."""
    if unit.one is None:
        async for link, rows in rows_between(archive.store, lineage, *unit.run):
            for row in rows:
                yield Brought(row.tokens, link.scope, message=row)
    elif unit.open:
        async for found in covered(archive, lineage, unit.one):
            for scope, row in found:
                yield Brought(row.tokens, scope, message=row)
    else:
        yield Brought(unit.one.row.tokens, unit.one.link.scope, summary=unit.one.row)


def _whole_words(text: str, start: int, end: int) -> str:
    """The text between two places, without a word that the end would cut: the half of a secret is
    not known as one."""
    spaces = [text.rfind(space, start, end) for space in " \t\n"] if end < len(text) else []
    return text[start : max(spaces) + 1] if max(spaces, default=-1) > start else text[start:end]


async def _cut(archive: Archive, one: Brought, start: int, room: int) -> Brought:
    """As much of a long message or summary as there is room for, from a character on."""
    text = one.summary.text if one.summary is not None else ""
    if one.message is not None:
        text = await asyncio.to_thread(text_of_row, one.message)
    size = room * _CHARS_A_TOKEN
    while True:
        piece = Piece(_whole_words(text, start, start + size), start, len(text))
        tokens = await archive.count(piece.shown())
        if tokens <= room or size <= _SMALLEST:
            return replace(one, tokens=tokens, piece=piece)
        size = max(_SMALLEST, size * room * 9 // (tokens * 10))
