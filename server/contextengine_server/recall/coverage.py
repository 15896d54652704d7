"""What lies under a summary: the summaries that it was made of, and the messages."""

from __future__ import annotations

from collections.abc import AsyncIterator

from contextengine_server.context.scope import Scope
from contextengine_server.errors import RowNotFound
from contextengine_server.store.rows import MessageRow
from contextengine_server.wire.damage import message_of
from contextengine_server.wire.message import outward

from .archive import Archive
from .lineage import Lineage, SummaryAt, rows_between

Waiting = dict[str, list[MessageRow]]
"""Messages by the ids of those of their calls that have no result yet."""

Covered = list[tuple[Scope, MessageRow]]
"""Messages, each with the session that stores it."""


async def summary_of(archive: Archive, lineage: Lineage, summary_id: str) -> SummaryAt | None:
    """The summary of this id, or what stands in its place since it was made again; None where the
    session recalls none."""
    every = await lineage.summaries(archive.store)
    standing = await lineage.standing(archive.store, summary_id)
    return next((one for one in every if one.row.id == standing), None)


async def required_summary(archive: Archive, lineage: Lineage, summary_id: str) -> SummaryAt:
    """The same. Raises RowNotFound."""
    found = await summary_of(archive, lineage, summary_id)
    if found is None:
        raise RowNotFound(
            f"summary_id: the session has no summary {summary_id[:64]!r}: give an id that an"
            " assembly or Search answered",
            metadata={"field": "summary_id"},
        )
    return found


async def children_of(archive: Archive, lineage: Lineage, parent: SummaryAt) -> list[SummaryAt]:
    """The summaries that this one was made of, in order; of those that were made again what stands
    in their place."""
    if not parent.row.children:
        return []
    known = {one.row.id: one for one in reversed(await lineage.summaries(archive.store))}
    children = [await lineage.standing(archive.store, child) for child in parent.row.children]
    return [known[child] for child in children if child in known]


async def covered(archive: Archive, lineage: Lineage, one: SummaryAt) -> AsyncIterator[Covered]:
    """The messages that a summary stands for, in order, some at a time; results that came late,
    after their range, last.

    Pinned messages are in no summary. What was live when the summary was made is what it covers,
    whatever became of it.
    """
    row, created = one.row, one.as_of
    waiting: Waiting = {}
    async for link, rows in rows_between(
        archive.store, lineage, row.first_sequence, row.last_sequence, below=one.link, as_of=created
    ):
        covered_rows = [member for member in rows if not member.pinned]
        for member in covered_rows:
            _await_results(waiting, member)
        if covered_rows:
            yield [(link.scope, member) for member in covered_rows]
    late: dict[int, MessageRow] = {}
    for call in (row for rows in waiting.values() for row in rows):
        for member in await archive.store.atom_of(one.link.scope, call.sequence):
            if member.sequence > row.last_sequence and member.created_revision <= created:
                late[member.sequence] = member
    if late:
        yield [(one.link.scope, member) for _, member in sorted(late.items())]


def _await_results(waiting: Waiting, row: MessageRow) -> None:
    """Notes calls without a result, whose results may lie behind the range."""
    calls, results = outward(message_of(row).parts[:])
    for _, call_id in results:
        if waiting.get(call_id):
            waiting[call_id].pop(0)
    for call in calls:
        waiting.setdefault(call.call_id, []).append(row)
