"""RecordHostChange: what the harness did to its own transcript."""

from __future__ import annotations

import msgspec

from contextengine_server.compaction.host_summary import HostSummaries
from contextengine_server.session.address import Addresses, Ref
from contextengine_server.session.change import Changed
from contextengine_server.session.lifecycle import Lifecycle
from contextengine_server.session.receipt import Request
from contextengine_server.session.sessions import Sessions
from contextengine_server.store.rows import SummaryRow


class Rewound(msgspec.Struct, frozen=True):
    """The host undid, edited or branched: what came after a sequence is gone."""

    after_sequence: int


class HostCompacted(msgspec.Struct, frozen=True):
    """The host compacted a range of sequences by itself."""

    first_sequence: int
    last_sequence: int
    summary: str


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
    lifecycle: Lifecycle
    host_summaries: HostSummaries

    async def run(self, tenant: str, ref: Ref, change: HostChange, request: Request) -> Recorded:
        """Records a change, once. Raises SessionNotFound, InvalidField."""
        address = await self.addresses.find(tenant, ref)
        async with self.sessions.open(address.scope, lock=True) as session:
            session.require()
            match change:
                case HostCompacted(first, last, text):
                    done, row = await self.host_summaries.record(
                        session, address, request, first, last, text
                    )
                    return Recorded(done, row)
                case Rewound(after):
                    done = await self.lifecycle.rewind(session, address, request, after)
                case NativeCompacted():
                    done = await self.lifecycle.native_compaction(session, address, request)
            return Recorded(done)
