"""CommitCompaction: a proposal is taken or refused."""

from __future__ import annotations

import msgspec
import structlog

from contextengine_server.compaction.proposal import ProposalOutcome, Proposals
from contextengine_server.errors import InvalidField
from contextengine_server.session.address import Addresses, Ref
from contextengine_server.session.sessions import Sessions

MAX_REASON_CHARS = 200
"""Of a host's reason for refusing, so many are logged."""

log = structlog.get_logger("contextengine.compact")


class Decided(msgspec.Struct, frozen=True):
    """What became of a proposal."""

    decision: ProposalOutcome
    generation: int
    revision: int


class CommitCompaction(msgspec.Struct, frozen=True):
    """Decides about proposals."""

    addresses: Addresses
    sessions: Sessions
    proposals: Proposals

    async def run(
        self, tenant: str, ref: Ref, proposal_id: str, accept: bool, reason: str = ""
    ) -> Decided:
        """Takes or refuses a proposal, once. Raises SessionNotFound, RowNotFound."""
        address = await self.addresses.find(tenant, ref)
        if not proposal_id:
            raise InvalidField("proposal_id", "is required: Compact{propose_only} answered it")
        async with self.sessions.open(address.scope, lock=True) as session:
            session.require()
            decision = await self.proposals.decide(session, proposal_id, accept)
            if decision is ProposalOutcome.REFUSED and reason:
                why = reason[:MAX_REASON_CHARS]
                log.info("proposal refused", session=address.scope.session, why=why)
            return Decided(decision, session.require().generation, session.revision)
