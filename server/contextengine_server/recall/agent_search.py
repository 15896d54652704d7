"""Search of a session together with the other sessions of its agent, or of its key.

The sessions are gone through in batches: the session that is asked about and those that were made
last come first. Within a batch words are worth the same in every session, so that what was found in
one stands rightly beside what was found in another; messages stand first, then summaries. A page
says in its token which sessions it saw, as of which revision and how far it came in each. So what
is written, made or deleted meanwhile moves nothing: a session that is deleted takes its own hits
with it and nobody else's.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import merge
from time import monotonic
from typing import Annotated

import msgspec

from contextengine_server.store.rows import SessionHead
from contextengine_server.store.search import SearchSpan

from .archive import Archive
from .finds import (
    SCAN_S,
    Finder,
    Finds,
    Found,
    finder,
    first_match,
    hits_of,
    looked_up,
    message_spans,
    messages_in,
    ranked_messages,
    ranked_summaries,
    reading,
    scanned_messages,
    scanned_summaries,
    summaries_asked,
    summary_spans,
)
from .lineage import Lineage, Link, SummaryAt, lineage_of
from .pages import content_of, digest_of, foreign_page, token_with
from .patterns import Pattern
from .query import Hit, Page, Query
from .search import asked, indexed, searchable
from .terms import Term

BATCH = 64
"""Sessions that are searched together."""
BATCHES = 4
"""Batches that one call goes through, until its page is full."""

_BLOCK = 64
"""Candidates of one session that are ranked by their texts at once: fewer than for one session by
itself, since there are many."""
_DONE = 1
"""Nothing stands below the first message."""

_Number = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]


class _State(msgspec.Struct, array_like=True):
    """How far an answer came in one session."""

    name: str
    """Of the session in this life of it."""
    revision: _Number
    last: _Number
    messages: _Number = 0
    summaries: _Number = 0
    below: _Number = 0


class _Place(msgspec.Struct, array_like=True):
    """How far an answer came."""

    revision: _Number
    last: _Number
    """Of the session that is asked about: what is searched of it, and of what it goes on from."""
    after: tuple[_Number, str] | None = None
    """The batch lies behind this session; None: it is the first."""
    end: tuple[_Number, str] | None = None
    """The last one of the batch; None: no session stands behind it."""
    states: list[_State] = []
    """Of the sessions of the batch; none: it was not searched yet."""
    only: bool = False
    """True where the batch holds every session."""


class _Group(msgspec.Struct, frozen=True):
    """One session of a batch, and how far the answer came in it."""

    state: _State
    spans: Sequence[SearchSpan]
    lineage: Lineage
    summaries: Sequence[SummaryAt]


class _Batch(msgspec.Struct):
    """What was found in a batch."""

    hits: list[Hit]
    total: int | None = 0
    more: bool = False


async def search_agent(
    archive: Archive, head: SessionHead, query: Query, *, fresh: bool = False
) -> Page:
    """What a session and the others of its agent, or of its key, recall of a query. `fresh`: waits
    until all that they brought can be found. Raises InvalidField for a page that is not the
    query's, or a pattern that is none."""
    digest = digest_of(*head.scope, head.incarnation, query.others, asked(query))
    if query.page:
        place = _place_in(query.page, digest, head)
        revision = place.revision
    else:
        revision, last, _ = await searchable(archive, head)
        place = _Place(head.revision, last)
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
    hits: list[Hit] = []
    until = monotonic() + SCAN_S
    for _ in range(BATCHES):
        if not place.states:
            place = await _begun(archive, head, query, place, fresh=fresh)
        groups = await _groups(archive, head, query, place, lineage)
        found = await _search(archive, groups, query, query.limit - len(hits), until)
        hits += found.hits
        total = found.total if place.only else None
        if found.more:
            return Page(hits, token_with(digest, *msgspec.to_builtins(place)), total, revision)
        if place.end is None:
            return Page(hits, "", total, revision)
        place = _Place(place.revision, place.last, place.end)
        if len(hits) == query.limit:
            break
    return Page(hits, token_with(digest, *msgspec.to_builtins(place)), None, revision)


def _place_in(page: str, digest: str, head: SessionHead) -> _Place:
    """Where a page begins. Raises InvalidField."""
    try:
        place = msgspec.convert(content_of(page, digest), _Place)
    except msgspec.ValidationError as error:
        raise foreign_page() from error
    # A head of the past reads nothing newer, whatever page it is given.
    place.revision = min(place.revision, head.revision)
    place.last = min(place.last, head.last_sequence)
    return place


# The sessions of a batch


async def _begun(
    archive: Archive, head: SessionHead, query: Query, place: _Place, *, fresh: bool
) -> _Place:
    """The next batch, of which nothing was searched yet."""
    heads = await _heads(archive, head, query, BATCH + 1, place.after)
    more, heads = len(heads) > BATCH, heads[:BATCH]
    # What is in the archive is found by whoever asks for that session itself.
    others = [one for one in heads if one.scope != head.scope and not one.archived]
    if fresh:
        for one in others:
            await indexed(archive, one, one.revision)
    first = place.after is None
    states = [_State(_name(head), place.revision, place.last)] if first else []
    for one in others:
        _, last, _ = await searchable(archive, one)
        states.append(_State(_name(one), one.revision, last))
    # Behind the newest there is, so that those which are made meanwhile are not among them.
    after = place.after or (max([0, *(one.created_ms + 1 for one in heads)]), "")
    end = _key(heads[-1]) if more else None
    return _Place(place.revision, place.last, after, end, states, only=first and not more)


async def _groups(
    archive: Archive, head: SessionHead, query: Query, place: _Place, lineage: Lineage
) -> list[_Group]:
    """The sessions of a batch that are still there, the one that is asked about first."""
    states = {state.name: state for state in place.states}
    found = []
    if _name(head) in states:
        found.append(await _group(archive, query, states[_name(head)], lineage))
    shared = {link.scope: link.last for link in lineage.links}
    for one in await _listed(archive, head, query, place, len(states)):
        state = states.get(_name(one))
        if state is None or one.scope == head.scope:
            continue
        # Its own rows alone, and of these not what the session that is asked about goes on from.
        own = one.parent_sequence + 1 if one.parent_session else 1
        known = shared.get(one.scope, 0)
        last, revision = min(state.last, one.last_sequence), min(state.revision, one.revision)
        link = Link(one.scope, max(own, known + 1), last, revision)
        found.append(
            await _group(archive, query, state, Lineage((link,), query.retired), known=known)
        )
    return found


async def _heads(
    archive: Archive, head: SessionHead, query: Query, limit: int, after: tuple[int, str] | None
) -> list[SessionHead]:
    """The sessions that are asked about besides, the one made last first."""
    if query.key_sessions and not head.session_key:
        return []
    return await archive.store.agent_sessions(
        head.scope.tenant,
        head.scope.agent,
        session_key=head.session_key if query.key_sessions else "",
        limit=limit,
        after=after,
    )


async def _listed(
    archive: Archive, head: SessionHead, query: Query, place: _Place, count: int
) -> list[SessionHead]:
    """The sessions of a batch, and what else stands between them by now."""
    found: list[SessionHead] = []
    after = place.after
    while True:
        heads = await _heads(archive, head, query, count + 1, after)
        found += [one for one in heads if place.end is None or _key(one) >= place.end]
        if len(heads) <= count or (place.end is not None and _key(heads[-1]) <= place.end):
            return found
        after = _key(heads[-1])


async def _group(
    archive: Archive, query: Query, state: _State, lineage: Lineage, known: int = 0
) -> _Group:
    """`known`: up to this sequence its summaries are found with another session."""
    summaries = [
        one
        for one in await summaries_asked(archive, lineage, query)
        if one.row.last_sequence > known
    ]
    spans = message_spans(lineage, query) if query.messages else []
    return _Group(state, spans, lineage, summaries)


def _name(head: SessionHead) -> str:
    return digest_of(head.scope.session, head.incarnation)[:8]


def _key(head: SessionHead) -> tuple[int, str]:
    return head.created_ms, head.scope.session


# What a batch holds


async def _search(
    archive: Archive, groups: Sequence[_Group], query: Query, need: int, until: float
) -> _Batch:
    """At most `need` hits of a batch, and moves its states behind them."""
    pattern, terms = reading(query, archive.store.index.available)
    if pattern is not None:
        messages = await _scan_messages(archive, groups, pattern, need, until)
    else:
        messages = await _rank_messages(archive, groups, terms, query, need)
    if messages.more:
        return messages
    left = need - len(messages.hits)
    if pattern is not None:
        finds = [
            await scanned_summaries(group.summaries, pattern, group.state.summaries)
            for group in groups
        ]
        behind = await _summaries(archive, groups, finds, first_match(pattern), left)
    else:
        behind = await _rank_summaries(archive, groups, terms, left)
    known = messages.total is not None and behind.total is not None
    total = (messages.total or 0) + (behind.total or 0) if known else None
    return _Batch(messages.hits + behind.hits, total, behind.more)


async def _rank_messages(
    archive: Archive, groups: Sequence[_Group], terms: Sequence[Term], query: Query, need: int
) -> _Batch:
    spans = [span for group in groups for span in group.spans]
    lanes, _ = await looked_up(archive, spans, terms, messages_in(spans))
    finds = [
        await ranked_messages(
            archive, group.spans, terms, lanes, query, group.state.messages, need, _BLOCK
        )
        for group in groups
    ]
    taken, more = _best(finds, need)
    for at, one in taken:
        groups[at].state.messages = one.rank
    hits = await hits_of(archive, [one for _, one in taken], finder(lanes))
    totals = [find.total for find in finds]
    more = more or any(find.more is not None for find in finds)
    return _Batch(hits, None if None in totals else sum(filter(None, totals)), more)


async def _scan_messages(
    archive: Archive, groups: Sequence[_Group], pattern: Pattern, need: int, until: float
) -> _Batch:
    """Session by session, each from its newest message down."""
    taken: list[Found] = []
    more = False
    for group in groups:
        state, left = group.state, need - len(taken)
        if state.below == _DONE:
            continue
        finds = await scanned_messages(
            archive,
            group.spans,
            pattern,
            left + 1,
            state.messages,
            state.below,
            until - monotonic(),
        )
        fit = finds.found[:left]
        taken += fit
        state.messages += len(fit)
        if len(finds.found) > left:
            state.below = fit[-1].hit.sequence if fit else state.below
            more = True
        else:
            state.below = _DONE if finds.more is None else finds.more
            more = finds.more is not None
        if more:
            break
    hits = await hits_of(archive, taken, first_match(pattern))
    total = None if more else sum(group.state.messages for group in groups)
    return _Batch(hits, total, more)


async def _rank_summaries(
    archive: Archive, groups: Sequence[_Group], terms: Sequence[Term], need: int
) -> _Batch:
    spans = [summary_spans(group.lineage, group.summaries) for group in groups]
    count = sum(len(group.summaries) for group in groups)
    if not count:
        return _Batch([])
    lanes, _ = await looked_up(archive, [span for some in spans for span in some], terms, count)
    finds = []
    for group, some in zip(groups, spans, strict=True):
        matches = await archive.store.index.find(
            some, [one.lane for one in lanes], len(group.summaries) + 1
        )
        finds.append(await ranked_summaries(lanes, matches, group.summaries, group.state.summaries))
    return await _summaries(archive, groups, finds, finder(lanes), need)


async def _summaries(
    archive: Archive, groups: Sequence[_Group], finds: Sequence[Finds], find: Finder, need: int
) -> _Batch:
    taken, more = _best(finds, need)
    for at, _ in taken:
        groups[at].state.summaries += 1
    hits = await hits_of(archive, [one for _, one in taken], find)
    return _Batch(hits, sum(one.total or 0 for one in finds), more)


def _best(finds: Sequence[Finds], need: int) -> tuple[list[tuple[int, Found]], bool]:
    """The best of what sessions found, with the place of each session, and whether that is not all.
    Of equals those of the session that stands first; in each session the order is its own."""
    ways = [[(at, one) for one in found.found] for at, found in enumerate(finds)]
    merged = list(merge(*ways, key=lambda way: (-way[1].score, way[0])))
    return merged[:need], len(merged) > need
