"""Which rows a session may recall (law 8): its own, and those of the session that it continues, up
to that moment."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import structlog

from contextengine_server.context.scope import Scope
from contextengine_server.store.lineage import parent_of
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import MessageRow, SessionHead, SummaryRow
from contextengine_server.wire.damage import as_shown

Inherits = Callable[[SessionHead, int | None], bool]
"""Whether a session's view begins with the rows of the one that it continues, now (None) or as of a
revision."""

_SLICE = 256
"""Rows that are read at once."""

log = structlog.get_logger("contextengine.recall")


class Link(msgspec.Struct, frozen=True):
    """Rows of one session: those with sequences from `first` to `last`, as of a revision."""

    scope: Scope
    first: int
    last: int
    revision: int


class SummaryAt(msgspec.Struct, frozen=True):
    """A summary, where it is stored, and its ordinal there."""

    link: Link
    ordinal: int
    row: SummaryRow
    as_of: int
    """It covers what was there at this revision of its session: when it was made, or the first of
    those in whose place it stands."""


@dataclass(slots=True)
class Lineage:
    """The sessions whose rows one session recalls, the newest rows first."""

    links: Sequence[Link]
    retired: bool
    """True: rows that left the view count as well."""
    _summaries: list[SummaryAt] | None = field(default=None)
    _remade: dict[str, str] = field(default_factory=dict)
    """Of summaries that were made again, what stands in their place."""

    async def summaries(self, store: Store) -> list[SummaryAt]:
        """Every summary within but those that were made again since, those of the session itself
        first, in the order of creation."""
        if self._summaries is None:
            found = []
            for link in self.links:
                stored = as_shown(await store.summaries(link.scope, retired=True))
                rows = sorted(stored, key=_creation)
                by_id = {row.id: row for row in rows}
                since = {row.id: _since(row, by_id) for row in rows}
                self._remade |= {
                    row.remakes: row.id
                    for row in rows
                    if row.remakes and _live(since[row.id], row.retired_revision, link)
                }
                found += [
                    SummaryAt(link, ordinal, row, _first(row, by_id).created_revision)
                    for ordinal, row in enumerate(rows)
                    if row.last_sequence <= link.last
                    and self._there(since[row.id], row.retired_revision, link)
                ]
            self._summaries = [one for one in found if one.row.id not in self._remade]
        return self._summaries

    async def standing(self, store: Store, summary_id: str) -> str:
        """The id of what stands in the place of a summary: itself, where it was not made again."""
        await self.summaries(store)
        while summary_id in self._remade:
            summary_id = self._remade[summary_id]
        return summary_id

    def _there(self, created: int, gone: int, link: Link) -> bool:
        return created <= link.revision and (self.retired or not gone or gone > link.revision)

    def ranges(self, first: int, last: int) -> Iterator[tuple[Link, int, int]]:
        """The parts of a range of sequences by the session that stores them, in order."""
        for link in reversed(self.links):
            low, high = max(first, link.first), min(last, link.last)
            if low <= high:
                yield link, low, high


async def lineage_of(
    store: Store,
    head: SessionHead,
    inherits: Inherits,
    *,
    revision: int | None = None,
    last: int | None = None,
    retired: bool = False,
) -> Lineage:
    """What a session recalls, as of a revision of its own and up to a sequence. An incomplete scope
    recalls nothing."""
    if not head.scope.complete:
        log.warning(
            "recall_without_scope", tenant=bool(head.scope.tenant), agent=bool(head.scope.agent)
        )
        return Lineage((), retired)
    links: list[Link] = []
    known: SessionHead | None = head
    as_of = head.revision if revision is None else revision
    last = head.last_sequence if last is None else last
    while known is not None:
        # A reset cuts the view off from the parent. Whoever asks for rows that left the view wants
        # the parent's as well.
        parent = await parent_of(store, known) if retired or inherits(known, as_of) else None
        first = known.parent_sequence + 1 if known.parent_session else 1
        links.append(Link(known.scope, first, last, as_of))
        as_of, last = known.parent_revision, min(last, known.parent_sequence)
        known = (
            parent if all(parent is None or link.scope != parent.scope for link in links) else None
        )
    return Lineage(links, retired)


async def rows_between(
    store: Store,
    lineage: Lineage,
    first: int,
    last: int,
    *,
    below: Link | None = None,
    as_of: int | None = None,
) -> AsyncIterator[tuple[Link, list[MessageRow]]]:
    """The messages of a range of sequences in order, some at a time, with the link that they belong
    to. `below`: of this link, as of a revision of its own, and of those under it."""
    for link, low, high in lineage.ranges(first, last):
        if below is not None and low > below.last:
            continue
        moment = as_of if as_of is not None and link is below else link.revision
        for start in range(low, high + 1, _SLICE):
            end = min(high, start + _SLICE - 1)
            rows = await store.messages(
                link.scope, start, end, as_of=moment, retired=lineage.retired and below is None
            )
            if rows:
                yield link, rows


def _creation(row: SummaryRow) -> tuple[int, str]:
    return row.created_revision, row.id


def _live(created: int, gone: int, link: Link) -> bool:
    return created <= link.revision and (not gone or gone > link.revision)


def _since(row: SummaryRow, by_id: Mapping[str, SummaryRow]) -> int:
    """The revision from which a summary counts: its own. One that was made for another which was
    unfit to be shown has its generation, and counts from when that did."""
    while row.remakes in by_id and by_id[row.remakes].generation == row.generation:
        row = by_id[row.remakes]
    return row.created_revision


def _first(row: SummaryRow, by_id: Mapping[str, SummaryRow]) -> SummaryRow:
    """The first of the summaries in whose place this one stands, or itself."""
    while row.remakes in by_id:
        row = by_id[row.remakes]
    return row
