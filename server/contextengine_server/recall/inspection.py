"""Inspect: what a summary covers, from the rows and not from its words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from contextengine_server.store.rows import SessionHead, SummaryRow
from contextengine_server.wire.damage import message_of

from .archive import Archive
from .coverage import children_of, covered, required_summary
from .lineage import lineage_of
from .texts import role_name

ASSISTANT = 2
"""The wire's number of the role whose messages call tools."""


class Inspected(msgspec.Struct, frozen=True):
    """A summary's row, and counts of what lies under it."""

    row: SummaryRow
    children: Sequence[SummaryRow]
    messages_by_role: Mapping[str, int]
    tool_calls: Mapping[str, int]


async def inspect(
    archive: Archive, head: SessionHead, summary_id: str, *, retired: bool = True
) -> Inspected:
    """What a summary covers. `retired`: also one that has left the view. Raises RowNotFound."""
    lineage = await lineage_of(archive.store, head, archive.inherits, retired=retired)
    one = await required_summary(archive, lineage, summary_id)
    roles: Counter[str] = Counter()
    tools: Counter[str] = Counter()
    async for rows in covered(archive, lineage, one):
        for _, row in rows:
            roles[role_name(row.role)] += 1
            if row.role == ASSISTANT:
                parts = message_of(row).parts
                tools.update(part.tool_call.name for part in parts if part.HasField("tool_call"))
    children = [child.row for child in await children_of(archive, lineage, one)]
    return Inspected(one.row, children, dict(roles), dict(tools))
