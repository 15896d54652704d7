"""Search of one session: by words, ranked, or by a regular expression, from the newest down.

Messages and summaries are ranked apart, since scores of two collections do not compare. Messages
stand first: a summary says again what they say, in fewer words. A page is worked out anew from its
token, which says what was searched and how far the answer came: nothing is remembered between
pages, and rows that come meanwhile do not move the others.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from contextengine_server.store.rows import SessionHead

from .archive import Archive
from .finds import (
    Finds,
    hits_of,
    message_spans,
    messages_by_words,
    reading,
    scanned_messages,
    scanned_summaries,
    summaries_asked,
    summaries_by_words,
)
from .lineage import lineage_of
from .pages import digest_of, numbers_in, token_of
from .query import Page, Query

MAX_QUERY_BYTES = 4_096


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


async def search(archive: Archive, head: SessionHead, query: Query) -> Page:
    """What a session recalls of a query. Raises InvalidField for a page that is not the query's, or
    a pattern that is none."""
    digest = digest_of(*head.scope, head.incarnation, asked(query))
    revision, last, summarized = await searchable(archive, head)
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
    pattern, terms = reading(query, archive.store.index.available)
    messages = summaries = Finds()
    if query.messages:
        spans = message_spans(lineage, query)
        if pattern is not None:
            messages = await scanned_messages(
                archive, spans, pattern, query.limit + 1, place.messages, place.below
            )
        else:
            messages = await messages_by_words(archive, spans, terms, query, place.messages)
    # Most sessions have none, and stand on nobody who may have some.
    some = summarized or len(lineage.links) > 1
    chosen = await summaries_asked(archive, lineage, query) if some else []
    if chosen and pattern is not None:
        summaries = await scanned_summaries(chosen, pattern, place.summaries)
    elif chosen:
        summaries = await summaries_by_words(archive, lineage, terms, chosen, place.summaries)
    return await _page(archive, digest, query.limit, place, messages, summaries, revision)


class Searchable(NamedTuple):
    """How far a session's search comes now: the index may be behind."""

    revision: int
    last: int
    """The newest sequence."""
    summarized: bool = True
    """False where the session is known to have no summary of its own, retired ones included."""


async def searchable(archive: Archive, head: SessionHead) -> Searchable:
    """How far a session's search comes now."""
    index, progress = archive.store.index, await archive.indexer.progress(head)
    if progress is None:
        return Searchable(head.revision, head.last_sequence)
    summarized = progress.summaries > 0 or not progress.last_sequence  # then they may be away
    if not index.available or progress.done:
        return Searchable(head.revision, head.last_sequence, summarized)
    last = min(head.last_sequence, max(progress.cursor.sequence, head.parent_sequence))
    return Searchable(min(head.revision, progress.cursor.revision), last, summarized)


async def indexed(archive: Archive, head: SessionHead, revision: int) -> None:
    """Waits until all that a session recalls can be found: its own rows up to a revision, and what
    it inherited."""
    await archive.indexer.reached(head.scope, revision)
    lineage = await lineage_of(archive.store, head, archive.inherits, retired=True)
    for link in lineage.links[1:]:
        await archive.indexer.reached(link.scope, link.revision)


def asked(query: Query) -> list[object]:
    """What makes a query another one, its page and how many hits it holds apart."""
    kinds = [query.messages, query.summaries, query.retired, query.regex]
    return [query.text, *kinds, query.roles, query.first, query.last, query.start_ms, query.end_ms]


async def _page(
    archive: Archive,
    digest: str,
    limit: int,
    place: _Place,
    messages: Finds,
    summaries: Finds,
    revision: int,
) -> Page:
    first = messages.found[:limit]
    # On a page all messages come before all summaries. So no summary is shown while further pages
    # may hold messages.
    behind = summaries.found[: limit - len(first)] if messages.more is None else ()
    hits = await hits_of(archive, first, messages.find)
    hits += await hits_of(archive, behind, summaries.find)
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
