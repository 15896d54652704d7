"""Export: a session's rows as they are stored."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from contextengine_server.context.scope import Scope
from contextengine_server.errors import FieldViolation, InvalidField, RowNotFound, SessionReplaced
from contextengine_server.session.address import Addresses, Ref, not_found
from contextengine_server.session.load import lineage_rows, lineage_summaries
from contextengine_server.session.sessions import Sessions
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import MessageRow, SessionHead, SummaryRow

from .list import Listed, listed


class Exported(msgspec.Struct, frozen=True):
    """A session with its rows, each message with the session that stores it."""

    session: Listed
    messages: Sequence[tuple[Scope, MessageRow]]
    summaries: Sequence[SummaryRow]


class Export(msgspec.Struct, frozen=True):
    """Reads whole sessions."""

    addresses: Addresses
    sessions: Sessions
    store: Store

    async def run(
        self,
        tenant: str,
        ref: Ref,
        *,
        as_of: int | None = None,
        include_retired: bool = False,
        at_least_revision: int = 0,
    ) -> Exported:
        """The session as of a revision; None: as it is. `include_retired`: rows that left the view
        as well. Raises SessionNotFound, InvalidField, RowNotFound, DeadlinePassed, and
        SessionReplaced where the session is deleted meanwhile."""
        scope = (await self.addresses.find(tenant, ref)).scope
        await self.sessions.reached(scope, at_least_revision)
        head = await self.store.head(scope)
        if head is None:
            raise not_found(scope)
        if as_of is not None and as_of < 0:
            raise InvalidField("as_of_revision", f"is {as_of}: give 0 to {head.revision}")
        if as_of is not None and as_of > head.revision:
            text = f"the session has revisions 1 to {head.revision}, not {as_of}"
            raise RowNotFound(
                f"as_of_revision: {text}", violations=[FieldViolation("as_of_revision", text)]
            )
        newest = head.revision if as_of is None else as_of
        rows = await lineage_rows(self.store, head, as_of=as_of)
        if include_retired:
            rows = await self._with_retired(head, rows, newest)
            summaries = await self.store.summaries(head.scope, retired=True)
            summaries = [row for row in summaries if row.created_revision <= newest]
        else:
            summaries = await lineage_summaries(self.store, head, as_of=as_of)
        now = await self.store.head(scope)
        if now is None or now.incarnation != head.incarnation:
            raise SessionReplaced(
                f"session {scope.session!r} was deleted while it was read: what was read of it is"
                " not the whole of anything",
                metadata={"session_id": scope.session},
            )
        return Exported(await listed(self.store, head), rows, summaries)

    async def _with_retired(
        self, head: SessionHead, rows: Sequence[tuple[Scope, MessageRow]], newest: int
    ) -> list[tuple[Scope, MessageRow]]:
        own = {row.sequence for scope, row in rows if scope == head.scope}
        every = await self.store.messages(head.scope, retired=True)
        left = [row for row in every if row.sequence not in own and row.created_revision <= newest]
        return sorted([*rows, *((head.scope, row) for row in left)], key=_sequence)


def _sequence(row: tuple[Scope, MessageRow]) -> int:
    return row[1].sequence
