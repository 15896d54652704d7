"""Whether the index holds what the rows say. It is derived, so where it does not, it is made
anew."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from contextengine_server.context.scope import Scope
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import MessageRow
from contextengine_server.store.search import MAX_PARTS, MAX_PLACE, DocumentKind, Match, SearchSpan

from .texts import indexed_passages, summary_passages

_AT_ONCE = 64
"""Messages that are compared at once."""


async def stale_passages(store: Store, scope: Scope) -> int:
    """How many messages and summaries of a session the index has passed by without holding their
    first passage as it is. What it has yet to come to does not count."""
    progress = await store.index.progress(scope)
    if progress is None or not store.index.available:
        return 0
    stale = max(0, progress.cursor.summaries - progress.summaries)
    last = min(progress.cursor.sequence, progress.last_sequence, MAX_PLACE)
    for first in range(progress.first_sequence, last + 1, _AT_ONCE):
        end = min(first + _AT_ONCE - 1, last)
        rows = await store.messages(scope, first, end, retired=True)
        span = SearchSpan(scope, DocumentKind.MESSAGE, first, end, progress.revision, retired=True)
        indexed, _ = await store.index.scan(span, _AT_ONCE * MAX_PARTS)
        stale += await asyncio.to_thread(_differing, rows, indexed)
    summaries = await store.index.summaries(scope, 0)
    span = SearchSpan(scope, DocumentKind.SUMMARY, 0, MAX_PLACE, progress.revision)
    indexed, _ = await store.index.scan(span, len(summaries) * MAX_PARTS + 1)
    known = {match.place: match.text for match in indexed}
    done = [(at, row) for at, row in summaries if at < progress.cursor.summaries]
    return stale + sum(known.get(at) != summary_passages(row)[0] for at, row in done)


def _differing(rows: Sequence[MessageRow], indexed: Sequence[Match]) -> int:
    known = {match.place: match.text for match in indexed}
    first = {row.sequence: next(iter(indexed_passages(row)), None) for row in rows}
    return sum(known.get(sequence) != passage for sequence, passage in first.items())
