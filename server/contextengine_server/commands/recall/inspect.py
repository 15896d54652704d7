"""Inspect: what a summary covers."""

from __future__ import annotations

import msgspec

from contextengine_server.recall.archive import Archive
from contextengine_server.recall.inspection import Inspected, inspect
from contextengine_server.session.address import Ref

from .grant import RecallGrants


class InspectDone(msgspec.Struct, frozen=True):
    """A summary with what it covers, and its text without secrets."""

    found: Inspected
    text: str


class Inspect(msgspec.Struct, frozen=True):
    """Looks into summaries."""

    grants: RecallGrants
    archive: Archive

    async def run(self, tenant: str, ref: Ref, summary_id: str, spawn_token: str) -> InspectDone:
        """Raises SessionNotFound, RowNotFound, BudgetSpent."""
        reach = await self.grants.reach(tenant, ref, spawn_token)
        found = await inspect(self.archive, reach.head, summary_id, retired=reach.grant is None)
        text = self.archive.redact([found.row.text])[0]
        if reach.grant is not None:
            await self.grants.spend(reach.grant, await self.archive.count(text))
        return InspectDone(found, text)
