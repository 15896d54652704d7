"""What a query finds of one kind, messages or summaries: by words, ranked, or by going through
texts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from contextengine_server.store.rows import SummaryRow
from contextengine_server.store.search import (
    MAX_PLACE,
    Asking,
    DocumentKind,
    Lane,
    Match,
    SearchSpan,
)

from .archive import Archive
from .lineage import Lineage, SummaryAt
from .patterns import Pattern, compile_pattern
from .query import Hit, Query
from .scan import scanned
from .score.dates import dated, dates_in
from .score.neighbours import NOTHING, Ranked, asks, lent
from .score.rank import Sought, ranked, sought
from .snippets import densest, shown
from .terms import Term, terms_of
from .texts import beside_loop, cuts
from .turns import matches_at, turns_beside

SCAN_S = 2.0
"""How long one call goes through texts; what it did not come to is the next page's."""
BLOCK = 200
"""Candidates that are ranked by their texts at once."""

_FEW = 50
"""A word that is in no more passages is looked for within other words too."""


class Found(msgspec.Struct, frozen=True):
    """A hit whose snippet has yet to be made."""

    score: float
    text: str
    cut: tuple[bool, bool]
    hit: Hit
    span: SearchSpan | None = None
    """Where the message stands; None: it is a summary."""
    rank: int = 0
    """How far in the ranking of its kind it is, from 1; 0: there is no ranking."""


Finder = Callable[[str], tuple[int, int]]
"""Where in a text something was found: (start, length)."""


class Finds(msgspec.Struct, frozen=True):
    """Hits of one kind, from the page's first on."""

    found: Sequence[Found] = ()
    find: Finder = lambda text: (0, 0)
    """Where in a text of theirs something was found."""
    more: int | None = None
    """Where to go on; None: this is all there is."""
    total: int | None = 0


def reading(query: Query, indexed: bool) -> tuple[Pattern | None, list[Term]]:
    """The pattern to go through texts with, or the terms to look up. What has no words, and
    everything where nothing is indexed, is gone through."""
    if query.regex:
        return compile_pattern(query.text), []
    terms = terms_of(query.text)
    if terms and indexed:
        return None, terms
    words = [re.escape(term.text) for term in terms] or [re.escape(query.text.strip())]
    return compile_pattern("(?i)" + "|".join(words)), []


def message_spans(lineage: Lineage, query: Query) -> list[SearchSpan]:
    """Where a query looks for messages, the newest first."""
    found = []
    for link in lineage.links:
        first, last = max(link.first, query.first), min(link.last, query.last or link.last)
        if first <= last:
            filters = (query.retired, query.roles, query.start_ms, query.end_ms)
            found.append(
                SearchSpan(link.scope, DocumentKind.MESSAGE, first, last, link.revision, *filters)
            )
    return found


def summary_spans(lineage: Lineage, chosen: Sequence[SummaryAt]) -> list[SearchSpan]:
    """Where these summaries are looked for."""
    return [
        SearchSpan(
            link.scope,
            DocumentKind.SUMMARY,
            0,
            MAX_PLACE,
            link.revision,
            places={one.ordinal for one in chosen if one.link is link},
        )
        for link in lineage.links
    ]


async def summaries_asked(archive: Archive, lineage: Lineage, query: Query) -> list[SummaryAt]:
    """The summaries that a query looks into."""
    if not query.summaries or query.roles:
        return []
    return [one for one in await lineage.summaries(archive.store) if _covers(one.row, query)]


def _covers(row: SummaryRow, query: Query) -> bool:
    """True where a summary reaches into what is asked for."""
    if query.first > row.last_sequence or (query.last and query.last < row.first_sequence):
        return False
    if query.start_ms is not None and (row.end_ms is None or row.end_ms < query.start_ms):
        return False
    return query.end_ms is None or (row.start_ms is not None and row.start_ms < query.end_ms)


# By words


async def looked_up(
    archive: Archive,
    spans: Sequence[SearchSpan],
    terms: Sequence[Term],
    documents: int,
    limit: int = 0,
) -> tuple[list[Sought], list[Match]]:
    """The ways to find terms, each worth the more the fewer of so many documents it finds, and at
    most `limit` passages that they find."""
    lanes: list[Sought] = []

    def asking() -> Asking:
        words = yield [Lane(term.text) for term in terms]
        rare = [
            term
            for term, count in zip(terms, words, strict=True)
            if count <= _FEW and len(term.text) >= 3
        ]
        within = (yield [Lane(term.text, True) for term in rare]) if rare else []
        parts = dict(zip(rare, within, strict=True))
        lanes.extend(sought(terms, words, [parts.get(term, 0) for term in terms], documents))
        return [one.lane for one in lanes]

    matches = await archive.store.index.look(spans, asking(), limit)
    return lanes, matches


def messages_in(spans: Sequence[SearchSpan]) -> int:
    """How many messages these are."""
    return sum(span.last - span.first + 1 for span in spans)


async def messages_by_words(
    archive: Archive,
    spans: Sequence[SearchSpan],
    terms: Sequence[Term],
    query: Query,
    skip: int,
) -> Finds:
    """The best messages of one history for these terms, from one behind the first `skip` on."""
    wanted = _candidates(skip, query.limit, BLOCK)
    lanes, matches = await looked_up(archive, spans, terms, messages_in(spans), wanted)
    return await ranked_messages(
        archive, spans, terms, lanes, query, skip, query.limit, known=matches
    )


def _candidates(skip: int, need: int, block: int) -> int:
    return ((skip + need) // block + 1) * block


async def ranked_messages(
    archive: Archive,
    spans: Sequence[SearchSpan],
    terms: Sequence[Term],
    lanes: Sequence[Sought],
    query: Query,
    skip: int,
    need: int,
    block: int = BLOCK,
    known: Sequence[Match] | None = None,
) -> Finds:
    """The best messages of one history behind the first `skip`, one more than the `need` of a page.
    `block` candidates are ranked at once: the same for every page of an answer. `known`: the first
    of them, where they were looked up before."""
    wanted = _candidates(skip, need, block)
    while True:
        matches = known
        if matches is None:
            matches = await archive.store.index.find(spans, [one.lane for one in lanes], wanted)
        known = None
        order, total = await _ordered(archive, matches, spans, terms, lanes, query, block)
        found = await _shown(archive, spans, order, skip, need)
        whole = len(matches) < wanted
        if whole or len(found) > need:
            return Finds(found, finder(lanes), None if whole else 0, total if whole else None)
        # What only resembled the terms was left out: there may be more behind it.
        wanted *= 2


async def _shown(
    archive: Archive,
    spans: Sequence[SearchSpan],
    order: Sequence[Ranked],
    skip: int,
    need: int,
) -> list[Found]:
    """Those of this order behind the first `skip` whose messages are asked for, one more than
    `need`."""
    found: list[Found] = []
    while len(found) <= need and (batch := order[skip : skip + need + 1 - len(found)]):
        beside = [one.place for one in batch if one.match is None]
        others = await matches_at(archive, spans, beside) if beside else {}
        for rank, one in enumerate(batch, skip + 1):
            match = one.match or others.get(one.place)
            if match is not None:
                score = min(1.0, one.score)
                found.append(_of_message(match, score, rank, neighbour=one.match is None))
        skip += len(batch)
    return found


async def _ordered(
    archive: Archive,
    matches: Sequence[Match],
    spans: Sequence[SearchSpan],
    terms: Sequence[Term],
    lanes: Sequence[Sought],
    query: Query,
    block: int,
) -> tuple[list[Ranked], int]:
    """Matches in the order of their answer, and how many truly match."""
    question, dates = asks(terms), dates_in(query.text)
    order: list[Ranked] = []
    seen: set[int] = set()
    total = 0
    for start in range(0, len(matches), block):
        some = matches[start : start + block]
        size = sum(len(match.text) for match in some)
        scored = await beside_loop(size, ranked, some, lanes)
        total += len(scored)
        asked = NOTHING
        if question:
            asked = await beside_loop(size, archive.questions.asked_in, scored, lanes)
        piece = lent(dated(scored, dates), spans, seen, question, asked)
        seen.update(one.place for one in piece)
        order += piece
    return order, total


async def summaries_by_words(
    archive: Archive,
    lineage: Lineage,
    terms: Sequence[Term],
    chosen: Sequence[SummaryAt],
    skip: int,
) -> Finds:
    """The best of these summaries for these terms, behind the first `skip`."""
    spans = summary_spans(lineage, chosen)
    lanes, matches = await looked_up(archive, spans, terms, len(chosen), len(chosen) + 1)
    return await ranked_summaries(lanes, matches, chosen, skip)


async def ranked_summaries(
    lanes: Sequence[Sought], matches: Sequence[Match], chosen: Sequence[SummaryAt], skip: int
) -> Finds:
    """The best of the summaries that were found, behind the first `skip`."""
    known = {(one.link.scope, one.ordinal): one for one in chosen}
    scored = await beside_loop(sum(len(match.text) for match in matches), ranked, matches, lanes)
    found = [
        _of_summary(
            known[match.span.scope, match.place], score, match.text, cuts(match.part, match.text)
        )
        for score, match in scored
    ]
    return Finds(found[skip:], finder(lanes), None, len(found))


def finder(lanes: Sequence[Sought]) -> Finder:
    """Finds where the most of what is sought stands together."""
    worth = {one.term.root: one.worth for one in lanes}
    return lambda text: densest(text, list(worth.items()))


# By going through texts


async def scanned_messages(
    archive: Archive,
    spans: Sequence[SearchSpan],
    pattern: Pattern,
    need: int,
    skip: int,
    below: int,
    seconds: float = SCAN_S,
) -> Finds:
    """The newest `need` messages that match, below a sequence (0: the newest of all); `skip` were
    found before."""
    matches, rest = await scanned(archive, spans, pattern, need, seconds, below or None)
    found = [_of_message(match, 1.0, rank) for rank, match in enumerate(matches, skip + 1)]
    total = skip + len(found) if rest is None else None
    return Finds(found, first_match(pattern), rest, total)


async def scanned_summaries(chosen: Sequence[SummaryAt], pattern: Pattern, skip: int) -> Finds:
    """The newest of these summaries that match, behind the first `skip`."""
    matching = await asyncio.to_thread(
        lambda: [one for one in reversed(chosen) if pattern.first(one.row.text) is not None]
    )
    found = [_of_summary(one, 1.0, one.row.text, (False, False)) for one in matching]
    return Finds(found[skip:], first_match(pattern), None, len(found))


def first_match(pattern: Pattern) -> Finder:
    """Finds the first match."""

    def find(text: str) -> tuple[int, int]:
        start, end = pattern.first(text) or (0, 0)
        return start, end - start

    return find


# What is shown


def _of_message(match: Match, score: float, rank: int = 0, *, neighbour: bool = False) -> Found:
    hit = Hit(
        match.span.scope.session,
        "",
        score,
        sequence=match.place,
        role=match.role,
        time_ms=match.time_ms,
        host_id=match.host_id,
        neighbour=neighbour,
    )
    cut = (False, False) if neighbour else cuts(match.part, match.text)
    return Found(score, match.text, cut, hit, match.span, rank)


def _of_summary(one: SummaryAt, score: float, text: str, cut: tuple[bool, bool]) -> Found:
    return Found(score, text, cut, Hit(one.link.scope.session, "", score, summary=one.row))


async def hits_of(archive: Archive, taken: Sequence[Found], find: Finder) -> list[Hit]:
    """The hits with their snippets, and beside messages the turns before and behind them that are
    no hits."""
    if not taken:
        return []
    texts = [(one.text, one.cut) for one in taken]
    size = sum(len(one.text) for one in taken)
    snippets = await beside_loop(size, shown, texts, archive.redact, find)
    hits = [replace(one.hit, snippet=said) for one, said in zip(taken, snippets, strict=True)]
    messages = [at for at, one in enumerate(taken) if one.span is not None]
    beside = await turns_beside(
        archive, [(one.span, one.hit.sequence) for one in taken if one.span is not None]
    )
    for at, (before, after) in zip(messages, beside, strict=True):
        hits[at] = replace(hits[at], before=before, after=after)
    return hits
