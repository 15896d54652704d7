"""Search: by words, ranked, or by a regular expression, from the newest down.

Messages and summaries are ranked apart, since scores of two collections do not compare. Messages
stand first: a summary says again what they say, in fewer words. A page is worked out anew from its
token, which says what was searched and how far the answer came: nothing is remembered between
pages, and rows that come meanwhile do not move the others.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from contextengine_server.store.rows import SessionHead, SummaryRow
from contextengine_server.store.search import MAX_PLACE, DocumentKind, Lane, Match, SearchSpan

from .archive import Archive
from .lineage import Lineage, SummaryAt, lineage_of
from .pages import digest_of, numbers_in, token_of
from .patterns import Pattern, compile_pattern
from .query import Hit, Page, Query
from .scan import scanned
from .score.dates import Date, dated, dates_in
from .score.neighbours import Ranked, asks, lent
from .score.rank import Sought, ranked, sought
from .snippets import densest, shown
from .terms import Term, terms_of
from .texts import cuts
from .turns import row_at, turns_beside

MAX_QUERY_BYTES = 4_096
SCAN_S = 2.0
"""How long one call goes through texts; what it did not come to is the next page's."""

_BLOCK = 200
"""Candidates that are ranked by their texts at once."""
_FEW = 50
"""A word that is in no more passages is looked for within other words too."""


class _Place(msgspec.Struct, frozen=True):
    """How far an answer came."""

    revision: int
    last: int
    """The newest sequence that is searched."""
    messages: int = 0
    summaries: int = 0
    """How far in the ranking of each kind hits were given."""
    below: int = 0
    """Where going through messages goes on; 0: at the newest."""


class _Found(msgspec.Struct, frozen=True):
    """A hit whose snippet has yet to be made."""

    score: float
    text: str
    cut: tuple[bool, bool]
    hit: Hit
    span: SearchSpan | None = None
    """Where the message stands; None: it is a summary."""
    rank: int = 0
    """How far in the ranking of its kind it is, from 1; 0: there is no ranking."""


class _Finds(msgspec.Struct, frozen=True):
    """Hits of one kind, from the page's first on."""

    found: Sequence[_Found] = ()
    find: Callable[[str], tuple[int, int]] = lambda text: (0, 0)
    """Where in a text of theirs something was found."""
    more: int | None = None
    """Where to go on; None: this is all there is."""
    total: int | None = 0


async def search(archive: Archive, head: SessionHead, query: Query) -> Page:
    """What a session recalls of a query. Raises InvalidField for a page that is not the query's, or
    a pattern that is none."""
    digest = digest_of(*head.scope, head.incarnation, _asked(query))
    index, progress = archive.store.index, await archive.store.index.progress(head.scope)
    last, revision = head.last_sequence, head.revision
    if index.available and progress is not None and not progress.done:
        last = min(last, max(progress.cursor.sequence, head.parent_sequence))
        revision = min(revision, progress.cursor.revision)
    place = _Place(head.revision, last)
    if query.page:
        place = _Place(*numbers_in(query.page, digest, 5))
        # A head of the past reads nothing newer, whatever page it is given.
        place = replace(
            place,
            revision=min(place.revision, head.revision),
            last=min(place.last, head.last_sequence),
        )
        revision = place.revision
    lineage = await lineage_of(
        archive.store,
        head,
        archive.inherits,
        revision=place.revision,
        last=place.last,
        retired=query.retired,
    )
    if not lineage.links:
        return Page()
    pattern, terms = _reading(query, index.available)
    messages = summaries = _Finds()
    if query.messages:
        spans = _spans(lineage, query)
        if pattern is not None:
            messages = await _scan(archive, spans, pattern, query.limit, place)
        else:
            messages = await _rank(archive, spans, terms, dates_in(query.text), query.limit, place)
    if query.summaries and not query.roles:
        chosen = [one for one in await lineage.summaries(archive.store) if _covers(one.row, query)]
        if pattern is not None:
            summaries = await _scan_summaries(chosen, pattern, place)
        else:
            summaries = await _rank_summaries(archive, lineage, chosen, terms, place)
    return await _page(archive, digest, query.limit, place, messages, summaries, revision)


async def indexed(archive: Archive, head: SessionHead, revision: int) -> None:
    """Waits until all that a session recalls can be found: its own rows up to a revision, and what
    it inherited."""
    await archive.indexer.reached(head.scope, revision)
    lineage = await lineage_of(archive.store, head, archive.inherits, retired=True)
    for link in lineage.links[1:]:
        await archive.indexer.reached(link.scope, link.revision)


def _asked(query: Query) -> list[object]:
    kinds = [query.messages, query.summaries, query.retired, query.regex]
    return [query.text, *kinds, query.roles, query.first, query.last, query.start_ms, query.end_ms]


def _reading(query: Query, indexed: bool) -> tuple[Pattern | None, list[Term]]:
    """The pattern to go through texts with, or the terms to look up. What has no words, and
    everything where nothing is indexed, is gone through."""
    if query.regex:
        return compile_pattern(query.text), []
    terms = terms_of(query.text)
    if terms and indexed:
        return None, terms
    words = [re.escape(term.text) for term in terms] or [re.escape(query.text.strip())]
    return compile_pattern("(?i)" + "|".join(words)), []


def _spans(lineage: Lineage, query: Query) -> list[SearchSpan]:
    found = []
    for link in lineage.links:
        first, last = max(link.first, query.first), min(link.last, query.last or link.last)
        if first <= last:
            filters = (query.retired, query.roles, query.start_ms, query.end_ms)
            found.append(
                SearchSpan(link.scope, DocumentKind.MESSAGE, first, last, link.revision, *filters)
            )
    return found


def _covers(row: SummaryRow, query: Query) -> bool:
    """True where a summary reaches into what is asked for."""
    if query.first > row.last_sequence or (query.last and query.last < row.first_sequence):
        return False
    if query.start_ms is not None and (row.end_ms is None or row.end_ms < query.start_ms):
        return False
    return query.end_ms is None or (row.start_ms is not None and row.start_ms < query.end_ms)


# By words


async def _lanes(
    archive: Archive, spans: Sequence[SearchSpan], terms: Sequence[Term], documents: int
) -> list[Sought]:
    index = archive.store.index
    words = await index.count(spans, [Lane(term.text) for term in terms])
    rare = [
        term
        for term, count in zip(terms, words, strict=True)
        if count <= _FEW and len(term.text) >= 3
    ]
    parts = dict(
        zip(rare, await index.count(spans, [Lane(term.text, True) for term in rare]), strict=True)
    )
    return sought(terms, words, [parts.get(term, 0) for term in terms], documents)


async def _rank(
    archive: Archive,
    spans: Sequence[SearchSpan],
    terms: Sequence[Term],
    dates: Sequence[Date],
    limit: int,
    place: _Place,
) -> _Finds:
    lanes = await _lanes(archive, spans, terms, sum(span.last - span.first + 1 for span in spans))
    wanted = ((place.messages + limit) // _BLOCK + 1) * _BLOCK
    matches = await archive.store.index.find(spans, [one.lane for one in lanes], wanted)
    order: list[Ranked] = []
    seen: set[int] = set()
    total, question = 0, asks(terms)
    for start in range(0, len(matches), _BLOCK):
        scored = await asyncio.to_thread(ranked, matches[start : start + _BLOCK], lanes)
        total += len(scored)
        block = lent(dated(scored, dates), spans, seen, question)
        seen.update(one.place for one in block)
        order += block
    found: list[_Found] = []
    for rank, one in enumerate(order[place.messages :], place.messages + 1):
        if len(found) > limit:
            break
        match = one.match or await row_at(archive, spans, one.place)
        if match is not None:
            score = min(1.0, one.score)
            found.append(_of_message(match, score, rank, neighbour=one.match is None))
    whole = len(matches) < wanted
    return _Finds(found, _finder(lanes), None if whole else 0, total if whole else None)


async def _rank_summaries(
    archive: Archive,
    lineage: Lineage,
    chosen: Sequence[SummaryAt],
    terms: Sequence[Term],
    place: _Place,
) -> _Finds:
    known = {(one.link.scope, one.ordinal): one for one in chosen}
    spans = [
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
    lanes = await _lanes(archive, spans, terms, len(chosen)) if chosen else []
    matches = await archive.store.index.find(spans, [one.lane for one in lanes], len(chosen) + 1)
    scored = await asyncio.to_thread(ranked, matches, lanes)
    found = [
        _of_summary(
            known[match.span.scope, match.place], score, match.text, cuts(match.part, match.text)
        )
        for score, match in scored
    ]
    return _Finds(found[place.summaries :], _finder(lanes), None, len(found))


def _finder(lanes: Sequence[Sought]) -> Callable[[str], tuple[int, int]]:
    worth = {one.term.root: one.worth for one in lanes}
    return lambda text: densest(text, list(worth.items()))


# By going through texts


async def _scan(
    archive: Archive, spans: Sequence[SearchSpan], pattern: Pattern, limit: int, place: _Place
) -> _Finds:
    matches, below = await scanned(archive, spans, pattern, limit + 1, SCAN_S, place.below or None)
    found = [
        _of_message(match, 1.0, rank) for rank, match in enumerate(matches, place.messages + 1)
    ]
    total = place.messages + len(found) if below is None else None
    return _Finds(found, _first(pattern), below, total)


async def _scan_summaries(chosen: Sequence[SummaryAt], pattern: Pattern, place: _Place) -> _Finds:
    matching = await asyncio.to_thread(
        lambda: [one for one in reversed(chosen) if pattern.first(one.row.text) is not None]
    )
    found = [_of_summary(one, 1.0, one.row.text, (False, False)) for one in matching]
    return _Finds(found[place.summaries :], _first(pattern), None, len(found))


def _first(pattern: Pattern) -> Callable[[str], tuple[int, int]]:
    def find(text: str) -> tuple[int, int]:
        start, end = pattern.first(text) or (0, 0)
        return start, end - start

    return find


# The page


def _of_message(match: Match, score: float, rank: int = 0, *, neighbour: bool = False) -> _Found:
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
    return _Found(score, match.text, cut, hit, match.span, rank)


def _of_summary(one: SummaryAt, score: float, text: str, cut: tuple[bool, bool]) -> _Found:
    return _Found(score, text, cut, Hit(one.link.scope.session, "", score, summary=one.row))


async def _page(
    archive: Archive,
    digest: str,
    limit: int,
    place: _Place,
    messages: _Finds,
    summaries: _Finds,
    revision: int,
) -> Page:
    first = messages.found[:limit]
    # On a page all messages come before all summaries. So no summary is shown while further pages
    # may hold messages.
    behind = summaries.found[: limit - len(first)] if messages.more is None else ()
    hits = await asyncio.to_thread(_hits, archive, first, messages.find)
    shown_here = {hit.sequence for hit in hits}
    for at, one in enumerate(first):
        if one.span is not None:
            before, after = await turns_beside(archive, one.span, hits[at].sequence, shown_here)
            hits[at] = replace(hits[at], before=before, after=after)
    hits += await asyncio.to_thread(_hits, archive, behind, summaries.find)
    below = first[-1].hit.sequence if first else place.below
    all_messages = len(first) == len(messages.found)
    following = (
        place.revision,
        place.last,
        first[-1].rank if first else place.messages,
        place.summaries + len(behind),
        messages.more if all_messages and messages.more else below,
    )
    rest = not all_messages or messages.more is not None or len(behind) < len(summaries.found)
    known = messages.total is not None and summaries.total is not None
    total = (messages.total or 0) + (summaries.total or 0) if known else None
    return Page(hits, token_of(digest, following) if rest else "", total, revision)


def _hits(
    archive: Archive, taken: Sequence[_Found], find: Callable[[str], tuple[int, int]]
) -> list[Hit]:
    return [
        replace(one.hit, snippet=shown(one.text, archive.redact, find, one.cut)) for one in taken
    ]
