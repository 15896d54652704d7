"""RecordHostChange: what the harness did to its own transcript."""

from __future__ import annotations

import msgspec

from contextengine_server.commands.named_message import Named, Place, sequence_of
from contextengine_server.compaction.host_summary import HostSummaries
from contextengine_server.errors import InvalidField
from contextengine_server.session.address import Addresses, Ref
from contextengine_server.session.change import Changed
from contextengine_server.session.lifecycle import Lifecycle
from contextengine_server.session.receipt import Request
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import SummaryRow


class Rewound(msgspec.Struct, frozen=True):
    """The host undid, edited or branched: what came after a message is gone."""

    after: Place


class HostCompacted(msgspec.Struct, frozen=True):
    """The host compacted a range of messages by itself."""

    first: Place
    last: Place
    summary: str
    kept: Named | None = None
    """The first message that is kept, where that is named in the place of `last`."""


class NativeCompacted(msgspec.Struct, frozen=True):
    """The harness's native thread was compacted."""


HostChange = Rewound | HostCompacted | NativeCompacted


class Recorded(msgspec.Struct, frozen=True):
    """What became of it."""

    changed: Changed
    summary: SummaryRow | None = None


class RecordHostChange(msgspec.Struct, frozen=True):
    """Has a session follow what its harness did."""

    addresses: Addresses
    sessions: Sessions
    store: Store
    lifecycle: Lifecycle
    host_summaries: HostSummaries

    async def run(self, tenant: str, ref: Ref, change: HostChange, request: Request) -> Recorded:
        """Records a change, once. Raises SessionNotFound, InvalidField, RowNotFound."""
        address = await self.addresses.find(tenant, ref)
        async with self.sessions.open(address.scope, lock=True) as session:
            session.require()
            if await self.store.reply(address.scope, request.id) is not None:
                # What it names may have left the view since.
                return Recorded(await self.lifecycle.repeated(session, address, request))
            match change:
                case HostCompacted():
                    first, last = await self._range(session, change)
                    done, row = await self.host_summaries.record(
                        session, address, request, first, last, change.summary
                    )
                    return Recorded(done, row)
                case Rewound(after):
                    sequence = await sequence_of(after, session, self.store)
                    done = await self.lifecycle.rewind(session, address, request, sequence)
                case NativeCompacted():
                    done = await self.lifecycle.native_compaction(session, address, request)
            return Recorded(done)

    async def _range(self, session: Session, change: HostCompacted) -> tuple[int, int]:
        """The sequences of a host's own compaction. Raises RowNotFound, InvalidField."""
        first = await sequence_of(change.first, session, self.store)
        kept = change.kept
        if kept is None:
            return first, await sequence_of(change.last, session, self.store)
        behind = await sequence_of(kept, session, self.store)
        if behind <= max(1, first):
            raise InvalidField(
                kept.field,
                f"{kept.id!r} is the first message of the range itself: nothing is left to"
                " be covered before it",
            )
        return max(1, first), behind - 1
