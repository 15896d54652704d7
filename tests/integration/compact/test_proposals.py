"""Compact{propose_only} shows what would be done, CommitCompaction takes or refuses it. A proposal
that nobody takes changes nothing. See docs/semantics.md#proposals."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine_server.compaction.proposal import EXPIRES_MS
from tests.integration.assemble.asking import (
    ask,
    assign,
    calls,
    hashes,
    ids_of,
    judged,
    quiet,
    result,
    say,
    store,
    talk,
)
from tests.integration.harness import Clock, House, budget, problem, ref, texts
from tests.integration.harness import house as living

from .test_folding import SMALL

pytestmark = pytest.mark.asyncio(loop_scope="module")
SIZE = budget(2_000)


async def long(
    house: House, session: t.SessionRef, engine: str = "dag", options: Any = SMALL
) -> None:
    await assign(house, session, engine, **options)
    await store(house, session, talk(40, 100))
    await quiet(house, session)


async def propose(house: House, session: t.SessionRef, **more: Any) -> t.CompactResponse:
    return await house.client.compact(session, force=True, budget=SIZE, propose_only=True, **more)


def said(reply: t.CompactResponse) -> list[tuple[int, int, int]]:
    """Without tokens: an id counts among them, and says under which revision its summary came."""
    return [(s.first_sequence, s.last_sequence, s.depth) for s in reply.summaries]


@pytest.mark.parametrize(("engine", "options"), [("dag", SMALL), ("legacy", {})])
async def test_what_is_taken_is_what_was_shown(
    shared: House, session: t.SessionRef, engine: str, options: dict[str, Any]
) -> None:
    """And what would have been done without a proposal."""
    twin = ref(f"{session.session_id} twin")
    for each in (session, twin):
        await long(shared, each, engine, options)
    before = await shared.client.get_status(session)
    proposal = await propose(shared, session, return_list=True)
    assert (proposal.compacted, proposal.changed, proposal.ok, proposal.passes) == (
        False,
        True,
        True,
        0,
    )
    assert proposal.proposal_id
    assert proposal.tokens_after < proposal.tokens_before
    assert await shared.client.get_status(session) == before
    taken = await shared.client.commit_compaction(session, proposal.proposal_id, True)
    assert (taken.committed, taken.reason) == (True, "")
    # One change, however many summaries it brings.
    assert taken.revision == before.revision + 1
    assert taken.generation == len(proposal.summaries)
    reply = await ask(shared, session, budget=SIZE)
    assert [item.content_hash for item in reply.items] == [
        item.content_hash for item in proposal.items
    ]
    assert await judged(shared, reply, session) == []
    status = await shared.client.get_status(session)
    assert (status.view_tokens, status.summary_count) == (
        proposal.tokens_after,
        len(proposal.summaries),
    )
    done = await shared.client.compact(twin, force=True, budget=SIZE)
    assert said(done) == said(proposal)
    shared.forget()
    assert (await ask(shared, session, budget=SIZE)).items == reply.items
    # Taken again it is what it was.
    again = await shared.client.commit_compaction(session, proposal.proposal_id, True)
    assert (again.committed, again.revision) == (True, taken.revision)
    late = await shared.client.commit_compaction(session, proposal.proposal_id, False)
    assert late.committed
    await shared.client.compact(session, undo_to_generation=0)
    assert ids_of((await ask(shared, session, budget=budget(50_000))).items) == ids_of(talk(40))


async def test_what_was_taken_and_undone_can_be_made_again(
    shared: House, session: t.SessionRef
) -> None:
    """From whichever of its summaries on."""
    await long(shared, session)
    proposal = await propose(shared, session)
    assert len(proposal.summaries) > 4
    assert (await shared.client.commit_compaction(session, proposal.proposal_id, True)).committed
    for generation in range(len(proposal.summaries) - 1, -1, -1):
        await shared.client.compact(session, undo_to_generation=generation)
        done = await shared.client.compact(session, force=True, budget=SIZE)
        assert (bool(done.summaries), done.generation) == (True, len(proposal.summaries))


async def test_what_is_refused_stays_refused(shared: House, session: t.SessionRef) -> None:
    await long(shared, session)
    before = await shared.client.get_status(session)
    shown = await ask(shared, session, budget=SIZE)
    proposal = await propose(shared, session)
    refused = await shared.client.commit_compaction(
        session, proposal.proposal_id, False, refuse_reason="the list is needed as it is"
    )
    assert (refused.committed, refused.reason, refused.revision) == (
        False,
        "refused",
        before.revision,
    )
    again = await shared.client.commit_compaction(session, proposal.proposal_id, True)
    assert (again.committed, again.reason) == (False, "refused")
    assert await shared.client.get_status(session) == before
    assert hashes(await ask(shared, session, budget=SIZE)) == hashes(shown)


async def test_it_may_be_taken_after_more_was_said_and_after_a_restart(
    shared: House, session: t.SessionRef
) -> None:
    await long(shared, session, options=SMALL | {"freshTailTurns": 8})
    proposal = await propose(shared, session)
    await store(shared, session, talk(20, 100, "n"))
    evicted = await ask(shared, session, budget=SIZE)
    await shared.restart()
    assert (await shared.client.commit_compaction(session, proposal.proposal_id, True)).committed
    reply = await ask(shared, session, budget=SIZE)
    assert await judged(shared, reply, session) == []
    # What was evicted meanwhile does not come back.
    first = min(item.origin.sequence for item in evicted.items if item.origin.sequence)
    assert first > 80
    assert min(item.origin.sequence for item in reply.items if item.origin.sequence) >= first


@pytest.mark.parametrize("change", ["compaction", "rewind", "reset", "late", "undo"])
async def test_not_after_the_session_was_reshaped(
    shared: House, session: t.SessionRef, change: str
) -> None:
    await store(shared, session, [calls("a0", "late")])
    await long(shared, session)
    if change == "undo":
        await shared.client.compact(session, force=True, budget=budget(12_000))
    proposal = await propose(shared, session)
    assert proposal.changed
    match change:
        case "compaction":
            await shared.client.compact(session, force=True, budget=SIZE)
        case "rewind":
            await shared.client.record_host_change(
                session, rewind=t.RecordHostChangeRequest.Rewind(after_sequence=30)
            )
        case "reset":
            await shared.client.reset_session(session)
        case "late":
            await store(shared, session, [result("r0", "late")])
        case "undo":
            await shared.client.compact(session, undo_to_generation=0)
    before = await shared.client.get_status(session)
    answer = await shared.client.commit_compaction(session, proposal.proposal_id, True)
    assert (answer.committed, answer.reason) == (False, "the session changed")
    assert await shared.client.get_status(session) == before


async def test_it_expires(tmp_path: Path) -> None:
    clock = Clock()
    async with living(tmp_path, clock=clock) as clocked:
        await _expires(clocked, clock)


async def _expires(clocked: House, clock: Clock) -> None:
    for each in (ref(), ref("s2")):
        await store(clocked, each, talk(40, 100))
    kept, gone = await propose(clocked, ref()), await propose(clocked, ref("s2"))
    assert gone.proposal_expire_time.ToMilliseconds() == clock() + EXPIRES_MS
    clock.advance(EXPIRES_MS / 1000 - 1)
    assert (await clocked.client.commit_compaction(ref(), kept.proposal_id, True)).committed
    clock.advance(1)
    answer = await clocked.client.commit_compaction(ref("s2"), gone.proposal_id, True)
    assert (answer.committed, answer.reason) == (False, "expired")
    again = await clocked.client.commit_compaction(ref(), kept.proposal_id, True)
    assert again.committed


async def test_there_is_not_always_something_to_propose(
    shared: House, session: t.SessionRef
) -> None:
    await store(shared, session, [say("u1")])
    nothing = await propose(shared, session, return_list=True)
    assert (nothing.reason, nothing.changed, nothing.proposal_id) == (
        "nothing to compact",
        False,
        "",
    )
    assert texts(nothing.items) == texts([say("u1")])
    with pytest.raises(ContextEngineError) as missing:
        await shared.client.commit_compaction(session, "no-such", True)
    assert problem(missing.value) == ("NOT_FOUND", "ROW_NOT_FOUND", ["proposal_id"])


async def test_a_proposal_is_of_one_session(shared: House, session: t.SessionRef) -> None:
    other = ref(f"{session.session_id} other")
    await long(shared, session)
    await long(shared, other)
    proposal = await propose(shared, session)
    with pytest.raises(ContextEngineError) as missing:
        await shared.client.commit_compaction(other, proposal.proposal_id, True)
    assert missing.value.code.name == "NOT_FOUND"
    assert (await shared.client.commit_compaction(session, proposal.proposal_id, True)).committed


async def test_it_is_taken_once_by_whoever_is_first(shared: House, session: t.SessionRef) -> None:
    await long(shared, session)
    proposal = await propose(shared, session, request_id="p1")
    assert await propose(shared, session, request_id="p1") == proposal
    answers = await asyncio.gather(
        *(shared.client.commit_compaction(session, proposal.proposal_id, n != 2) for n in range(5))
    )
    assert len({(answer.committed, answer.generation) for answer in answers}) == 1
    status = await shared.client.get_status(session)
    assert status.generation in (0, len(proposal.summaries))
