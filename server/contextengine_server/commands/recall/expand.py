"""Expand: summaries and messages are brought back."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from contextengine_server.commands.named_message import recalled_messages
from contextengine_server.recall.archive import Archive
from contextengine_server.recall.expansion import DEFAULT_TOKENS, Expansion, Wanted, expand
from contextengine_server.session.address import Ref
from contextengine_server.session.selection import Selection
from contextengine_server.store.rows import SessionHead
from contextengine_server.telemetry.tracing import CURRENT

from .grant import RecallGrants


class Expand(msgspec.Struct, frozen=True):
    """Brings history back, and the parent's where a grant opens it."""

    grants: RecallGrants
    selection: Selection
    archive: Archive

    async def run(
        self,
        tenant: str,
        ref: Ref,
        wanted: Wanted,
        spawn_token: str,
        message_ids: Sequence[str] = (),
    ) -> Expansion:
        """One page, of messages by their host ids as well. `max_tokens` of 0: what the session's
        engine says. Raises SessionNotFound, RowNotFound, BudgetSpent."""
        reach = await self.grants.reach(tenant, ref, spawn_token)
        grant = reach.grant
        most = wanted.max_tokens or await page_tokens(self.selection, reach.head)
        named = await recalled_messages(message_ids, self.archive, reach.head)
        wanted = replace(
            wanted, max_tokens=most, sequences=[*wanted.sequences, *(row.sequence for row in named)]
        )
        if grant is not None:
            tokens, depth = min(most, grant.left), min(wanted.depth, grant.depth)
            wanted = replace(wanted, max_tokens=tokens, depth=depth, retired=False)
        with CURRENT.get().span("expand"):
            found = await expand(self.archive, reach.head, wanted)
        found.missing += len(set(message_ids) - {row.host_id for row in named})
        if grant is not None:
            await self.grants.spend(grant, found.tokens)
        return found


async def page_tokens(selection: Selection, head: SessionHead) -> int:
    """What one page of Expand holds by default: what the engine says, else ours."""
    engine = (await selection.engine_for(head.scope)).engine
    return engine.tools.page_tokens or DEFAULT_TOKENS
