"""What another server does between a compaction's plan and its commit: appends do no harm, what
reshapes the history has it planned again or refused."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from contextengine_server.commands.compaction.compact import CompactDone
from contextengine_server.commands.lifecycle.record_host_change import Rewound
from contextengine_server.compaction.proposal import EXPIRES_MS, ProposalOutcome
from contextengine_server.compaction.request import DEFERRED, HELD
from contextengine_server.context.plan import Summarized
from contextengine_server.errors import LostRace, SessionNotFound
from contextengine_server.session.address import Ref
from contextengine_server.session.sessions import COMPACTION, MAX_TRIES
from contextengine_server.store import held_lease
from tests.unit.commands.house import (
    AGENT,
    S1,
    TENANT,
    Meanwhile,
    Server,
    assistant,
    incoming,
    request,
    result,
    same_as_cold,
    scope,
    turns,
    user,
)


@pytest.fixture
async def session(server: Server) -> None:
    """A session with something to compact, and a call that was given up at its beginning."""
    begin = incoming(user("a", "1"), assistant("calls", "2", "c1"), user("b", "3"))
    await server.context.ingest.run(TENANT, S1, [*begin, *turns(1, 6)], None)


async def live(server: Server) -> list[str]:
    """The ids of the live summaries."""
    return [row.id for row in await server.store.summaries(scope())]


# A pass.


async def test_appends_meanwhile_are_kept(session: None, server: Server, other: Server) -> None:
    server.summarizer.meanwhile = [lambda: other.talk(7, 1)]
    done = await server.compact(4_000)
    assert done.done.summaries
    assert len(server.summarizer.asked) == len(await live(server))  # no pass was made twice
    assert (await server.stored())[-1].startswith("a7 ")
    await same_as_cold(server, other)


async def test_an_append_between_the_look_and_the_commit(
    session: None, server: Server, other: Server
) -> None:
    server.store.before_commit = [lambda: other.talk(7, 1)]
    assert (await server.compact(4_000)).done.summaries
    assert len(await live(server)) == len(server.summarizer.asked)
    assert (await server.stored())[-1].startswith("a7 ")
    await same_as_cold(server, other)


async def test_a_compaction_that_always_loses(session: None, server: Server, other: Server) -> None:
    server.store.before_commit = [
        lambda at=at: other.ingest(f"o{at}")  # type: ignore[misc]
        for at in range(MAX_TRIES)
    ]
    with pytest.raises(LostRace):
        await server.compact(4_000)
    assert await live(server) == []


async def rewind(other: Server) -> None:
    await other.context.record_host_change.run(TENANT, S1, Rewound(13), request("rewind"))


async def late(other: Server) -> None:
    await other.context.ingest.run(TENANT, S1, incoming(result("c1", "late", "late")), None)


def lose_the_lease(server: Server) -> None:
    """Whoever compacts was paused for longer than its lease."""
    server.store.rows.leases.clear()


async def undo(other: Server) -> None:
    """A compaction and its undo: the generation is what it was."""
    lose_the_lease(other)
    await other.compact(4_000)
    await other.compact(undo_to_generation=0)


async def compact(other: Server) -> None:
    lose_the_lease(other)
    await other.compact(4_000)


@pytest.mark.parametrize("change", [rewind, late, compact])
async def test_what_reshapes_the_history_has_it_planned_again(
    session: None, server: Server, other: Server, change: object
) -> None:
    assert callable(change)
    server.summarizer.meanwhile = [lambda: change(other)]
    await server.compact(4_000)
    rows = await server.store.summaries(scope())
    covered = [(row.first_sequence, row.last_sequence) for row in rows if not row.depth]
    assert covered == sorted(set(covered))
    assert all(before[1] < after[0] for before, after in pairwise(covered))
    await same_as_cold(server, other)
    await same_as_cold(other, server)


async def test_two_servers_ask_a_model_once(session: None, server: Server, other: Server) -> None:
    """Who comes while another server compacts waits, and takes what that made for its own."""
    joined: list[asyncio.Task[CompactDone]] = []

    async def join() -> None:
        joined.append(asyncio.create_task(other.compact(4_000)))
        await asyncio.sleep(0.05)
        assert not joined[0].done()

    server.summarizer.meanwhile = [join]
    first = await server.compact(4_000)
    async with asyncio.timeout(30):
        second = await joined[0]
    assert other.summarizer.asked == []
    assert first.done.summaries
    made = [row.id for row in first.done.summaries]
    assert [row.id for row in second.done.summaries] == made == await live(server)
    assert second.generation == first.generation
    await same_as_cold(other, server)


async def test_who_compacts_keeps_the_lease_and_gives_it_back(
    session: None, server: Server, other: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_lease, "LEASE_MS", 60)

    async def long() -> None:
        await asyncio.sleep(0.3)
        assert not await other.store.leases.take(scope(), COMPACTION, "other", 10)

    server.summarizer.meanwhile = [long]
    await server.compact(4_000)
    assert server.store.rows.leases == {}
    with pytest.raises(SessionNotFound):
        await server.compact(ref=Ref(AGENT, "nobody"))
    assert server.store.rows.leases == {}


async def test_a_session_rewound_under_its_summary(
    session: None, server: Server, other: Server
) -> None:
    """What left the view is in no summary."""

    async def back() -> None:
        await other.context.record_host_change.run(TENANT, S1, Rewound(3), request("rewind"))

    server.summarizer.meanwhile = [back]
    assert not (await server.compact(4_000)).done.summaries
    assert await live(server) == []
    assert await server.shown() == await other.shown()
    assert (await server.shown())[0] == "a"


async def test_an_undo_of_the_other_holds_what_was_planned_before_it(
    session: None, server: Server, other: Server
) -> None:
    server.summarizer.meanwhile = [lambda: undo(other)]
    done = await server.compact(4_000, force=False)
    assert done.done.reason == HELD
    assert await live(server) == []


async def test_a_session_that_is_always_reshaped_is_left_to_the_background(
    session: None, server: Server, other: Server
) -> None:
    server.summarizer.meanwhile = [
        lambda at=at: other.context.record_host_change.run(  # type: ignore[misc]
            TENANT, S1, Rewound(15), request(f"rewind{at}")
        )
        for at in range(4)
    ]
    done = await server.compact(4_000)
    assert (done.done.compacted, done.done.reason) == (False, DEFERRED)
    assert len(server.summarizer.asked) == 4


async def test_a_session_deleted_under_its_summary(
    session: None, server: Server, other: Server
) -> None:
    """The summary of one life is not committed to the next."""

    async def again() -> None:
        await other.sessions.delete.run(TENANT, S1, expected_revision=None, cascade=False)
        await other.ingest("other")

    server.summarizer.meanwhile = [again]
    assert not (await server.compact(4_000)).done.summaries
    assert await live(server) == []
    assert await server.shown() == ["other"]


# Proposals.


async def propose(server: Server) -> str:
    """A proposal's id."""
    proposal = (await server.compact(4_000, propose_only=True)).proposal
    assert proposal is not None
    assert proposal.id
    return proposal.id


async def decide(server: Server, proposal: str, accept: bool = True) -> ProposalOutcome:
    return (await server.context.commit_compaction.run(TENANT, S1, proposal, accept)).decision


async def test_the_other_takes_a_proposal(session: None, server: Server, other: Server) -> None:
    proposal = await propose(server)
    assert await live(server) == []
    assert await decide(other, proposal) is ProposalOutcome.COMMITTED
    made = await live(server)
    assert made
    assert await decide(server, proposal) is ProposalOutcome.COMMITTED
    assert await live(server) == made
    await same_as_cold(server, other)


async def test_a_proposal_may_be_taken_after_appends(
    session: None, server: Server, other: Server
) -> None:
    proposal = await propose(server)
    await other.talk(7, 1)
    server.store.before_commit = [lambda: other.ingest("more")]
    assert await decide(server, proposal) is ProposalOutcome.COMMITTED
    assert (await server.shown())[-1] == "more"
    await same_as_cold(server, other)


@pytest.mark.parametrize("change", [rewind, late, compact, undo])
async def test_a_proposal_over_what_was_reshaped_is_not_taken(
    session: None, server: Server, other: Server, change: object
) -> None:
    assert callable(change)
    proposal = await propose(server)
    await change(other)
    before = await live(server)
    assert await decide(server, proposal) is ProposalOutcome.CHANGED
    assert await live(server) == before


@pytest.mark.parametrize("change", [rewind, late, compact, undo])
async def test_a_proposal_whose_history_is_reshaped_while_it_is_taken(
    session: None, server: Server, other: Server, change: object
) -> None:
    assert callable(change)
    proposal = await propose(server)
    server.store.before_commit = [lambda: change(other)]
    assert await decide(server, proposal) is ProposalOutcome.CHANGED


@pytest.mark.parametrize("first", [True, False])
async def test_the_first_decision_of_two_stands(
    session: None, server: Server, other: Server, first: bool
) -> None:
    proposal = await propose(server)
    decided = ProposalOutcome.COMMITTED if first else ProposalOutcome.REFUSED
    assert await decide(other, proposal, first) is decided
    assert await decide(server, proposal, not first) is decided
    assert bool(await live(server)) is first


async def test_both_take_a_proposal_at_once(session: None, server: Server, other: Server) -> None:
    proposal = await propose(server)
    meanwhile: list[Meanwhile] = [lambda: decide(other, proposal)]
    server.store.before_commit = meanwhile
    assert await decide(server, proposal) is ProposalOutcome.COMMITTED
    made = [
        segment
        for segment in (await server.assemble()).plan.segments
        if isinstance(segment, Summarized)
    ]
    assert len(made) == len(await live(server))
    assert (await server.head()).generation == len(await live(server))


async def test_a_proposal_expires(session: None, server: Server) -> None:
    proposal = await propose(server)
    server.clock.advance(EXPIRES_MS / 1000)
    assert await decide(server, proposal) is ProposalOutcome.EXPIRED
    assert await live(server) == []


async def test_a_proposal_may_be_taken_until_it_expires(session: None, server: Server) -> None:
    proposal = await propose(server)
    server.clock.ms += EXPIRES_MS - 1
    assert await decide(server, proposal) is ProposalOutcome.COMMITTED
