"""Export: a session's rows as they are stored, read as they are sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import msgspec
from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.errors import FieldViolation, InvalidField, RowNotFound, SessionReplaced
from contextengine_server.session.address import Addresses, Ref, not_found
from contextengine_server.session.load import inherited_summaries, inherits, lineage_summaries
from contextengine_server.session.sessions import Sessions
from contextengine_server.store.lineage import parent_of
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import MessageRow, SessionHead, SummaryRow
from contextengine_server.wire.damage import absent

from .list import Listed, listed

PAGE_BYTES = 1 << 20
"""About how much of a session is in memory for one reader of it, besides the largest message."""
PAGE_ROWS = 64


class Stretch(msgspec.Struct, frozen=True):
    """Messages of a view that one session stores, as of a revision of it."""

    scope: Scope
    first: int
    last: int
    as_of: int


class Exported(msgspec.Struct, frozen=True):
    """A session whose rows are read as they are asked for, as they were at one revision. Raises
    SessionReplaced where the session is deleted meanwhile."""

    store: Store
    session: Listed
    newest: int
    """The revision."""
    as_of: int | None
    """The revision that was asked for."""
    retired: bool
    """Rows that left the view as well."""

    async def messages(self) -> AsyncIterator[tuple[Scope, MessageRow]]:
        """Every message with the session that stores it."""
        head = self.session.head
        for stretch in await _stretches(self.store, head, self.newest):
            own = stretch.scope == head.scope
            first, count, created = stretch.first, 1, 1
            while first <= stretch.last:
                last = min(stretch.last, first + count - 1)
                rows = await self.store.messages(
                    stretch.scope,
                    first,
                    last,
                    as_of=stretch.as_of,
                    retired=self.retired and own,
                )
                if own and self.as_of is None and len(rows) <= last - first:
                    rows = await self._with_gaps(rows, range(first, last + 1), created)
                await self._check()
                created = rows[-1].created_revision if rows else created
                for row in rows:
                    yield stretch.scope, self._as_it_was(row)
                first += count
                taken = sum(len(row.body) for row in rows)
                # A page tells how long the next may be, and never twice as long at once.
                count = max(1, min(2 * count, PAGE_ROWS, PAGE_BYTES * count // max(1, taken)))

    async def summaries(self) -> Sequence[SummaryRow]:
        """Every summary."""
        head = self.session.head
        if self.retired:
            own = await self.store.summaries(head.scope, as_of=self.newest, retired=True)
            rows = [*await inherited_summaries(self.store, head, as_of=self.newest), *own]
        else:
            rows = await lineage_summaries(self.store, head, as_of=self.newest)
        await self._check()
        return rows

    async def _with_gaps(
        self, rows: Sequence[MessageRow], sequences: range, created: int
    ) -> list[MessageRow]:
        """The rows with a gap for each sequence that nothing is stored of: sequences leave none
        out. `created`: the revision of what stands before them."""
        scope = self.session.head.scope
        stored = await self.store.messages(scope, sequences[0], sequences[-1], retired=True)
        revisions = {row.sequence: row.created_revision for row in stored}
        found = {row.sequence: row for row in rows}
        for sequence in sequences:
            if sequence not in revisions:
                found[sequence] = absent(sequence, created)
            created = revisions.get(sequence, created)
        return [found[sequence] for sequence in sorted(found)]

    def _as_it_was(self, row: MessageRow) -> MessageRow:
        """The row as it was at the revision, where none was asked for: what became of it while it
        was read is of another state."""
        gone = self.as_of is None and row.retired_revision > self.newest
        return replace(row, retired_revision=0) if gone else row

    async def _check(self) -> None:
        head = self.session.head
        now = await self.store.head(head.scope)
        if now is None or now.incarnation != head.incarnation:
            raise SessionReplaced(
                f"session {head.scope.session!r} was deleted while it was read: what was read of it"
                " is not the whole of anything",
                metadata={"session_id": head.scope.session},
            )


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
        as well. Raises SessionNotFound, InvalidField, RowNotFound and DeadlinePassed."""
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
        return Exported(
            self.store, await listed(self.store, head), newest, as_of, retired=include_retired
        )


async def _stretches(store: Store, head: SessionHead, as_of: int) -> list[Stretch]:
    """Where the messages of a view are: those of the session it continues, up to that moment,
    first."""
    inherited: list[Stretch] = []
    if inherits(head, as_of):
        parent = await parent_of(store, head)
        if parent is not None:
            inherited = [
                replace(stretch, last=min(stretch.last, head.parent_sequence))
                for stretch in await _stretches(store, parent, head.parent_revision)
            ]
    return [*inherited, Stretch(head.scope, head.parent_sequence + 1, head.last_sequence, as_of)]
