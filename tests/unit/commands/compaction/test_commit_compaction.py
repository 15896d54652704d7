"""CommitCompaction: a proposal is taken or refused, once."""

from __future__ import annotations

import pytest

from contextengine_server.compaction.proposal import ProposalOutcome
from contextengine_server.errors import InvalidField, RowNotFound, SessionNotFound
from tests.unit.commands.house import S1, TENANT, Server, scope


async def proposed(server: Server) -> str:
    await server.talk(1, 6)
    proposal = (await server.compact(4_000, propose_only=True)).proposal
    assert proposal is not None
    return proposal.id


async def test_what_was_proposed_is_committed(server: Server) -> None:
    proposal = await proposed(server)
    done = await server.context.commit_compaction.run(TENANT, S1, proposal, True)
    rows = await server.store.summaries(scope())
    assert done.decision is ProposalOutcome.COMMITTED
    assert (done.revision, done.generation) == (2, len(rows))
    again = await server.context.commit_compaction.run(TENANT, S1, proposal, True)
    assert (again.decision, again.revision) == (ProposalOutcome.COMMITTED, 2)


async def test_what_was_refused_stays_refused(server: Server) -> None:
    proposal = await proposed(server)
    for accept in (False, True):
        done = await server.context.commit_compaction.run(TENANT, S1, proposal, accept, "no")
        assert (done.decision, done.revision) == (ProposalOutcome.REFUSED, 1)
    assert await server.store.summaries(scope()) == []


async def test_what_is_not_known(server: Server) -> None:
    with pytest.raises(SessionNotFound):
        await server.context.commit_compaction.run(TENANT, S1, "none", True)
    await proposed(server)
    with pytest.raises(RowNotFound):
        await server.context.commit_compaction.run(TENANT, S1, "none", True)
    with pytest.raises(InvalidField):
        await server.context.commit_compaction.run(TENANT, S1, "", True)
