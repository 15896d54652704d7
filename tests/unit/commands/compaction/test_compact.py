"""Compact: the stored view is compacted, proposed, left to the background or to the host, or put
back."""

from __future__ import annotations

import asyncio

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.commands.compaction.compact import CompactCall, CompactDone
from contextengine_server.commands.turn.bootstrap import HostFacts, Introduction
from contextengine_server.compaction.request import (
    DEFERRED,
    HELD,
    UNCHANGED,
    CompactionRequest,
)
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.engines.host_capabilities import COMPACTS
from contextengine_server.errors import (
    EngineFailed,
    InvalidField,
    RequestIdReused,
    RevisionMismatch,
    SessionNotFound,
)
from contextengine_server.session.address import Ref
from contextengine_server.session.assembly.budget import BudgetSpec
from contextengine_server.summarize.request import Steering
from contextengine_server.telemetry.tracing import NO_TRACE
from tests.integration.engines.broken import FRAGILE, Fragile
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import (
    AGENT,
    S1,
    SMALL,
    TENANT,
    Rows,
    Server,
    incoming,
    request,
    scope,
    spoken,
    turns,
)


@pytest.fixture
async def session(server: Server) -> None:
    await server.talk(1, 6)


async def test_the_view_is_smaller_and_every_row_stays(session: None, server: Server) -> None:
    before = await server.stored()
    done = await server.compact(4_000)
    assert done.done.summaries
    assert done.done.after < done.done.before
    assert done.generation == len(done.done.summaries) == (await server.head()).generation
    assert (await server.assemble()).tokens == done.done.after
    assert done.first_kept_sequence == 1 + max(
        row.last_sequence for row in await server.store.summaries(scope())
    )
    assert await server.stored() == before


async def test_below_the_threshold_nothing_is_done(session: None, server: Server) -> None:
    done = await server.compact(100_000, force=False, to_threshold=True)
    assert (done.done.compacted, done.done.reason) == (False, "below threshold")
    assert (await server.head()).revision == 1


async def test_the_same_request_again_compacts_nothing(session: None, server: Server) -> None:
    await server.compact(4_000, request=request())
    revision = (await server.head()).revision
    await server.talk(7, 3)
    with pytest.raises(IndexError):  # the reply is as it was stored: nothing is encoded anew
        await server.compact(4_000, request=request())
    assert (await server.head()).revision == revision + 1
    with pytest.raises(RequestIdReused):
        await server.compact(4_000, request=request(digest=b"other"))


async def test_undo_brings_back_what_stood_there(session: None, server: Server) -> None:
    before = await server.shown()
    await server.compact(4_000)
    done = await server.compact(undo_to_generation=0)
    assert (done.done.reason, done.generation) == ("undone", 0)
    assert await server.shown() == before
    held = await server.compact(4_000, force=False)
    assert held.done.reason == HELD
    assert (await server.compact(4_000)).done.summaries
    assert not (await server.state()).held
    (told,) = server.events("context:compaction_undone")
    assert told.counts["undone"] > 0


async def test_undo_to_where_it_is_changes_nothing(session: None, server: Server) -> None:
    await server.compact(undo_to_generation=0)
    assert (await server.head()).revision == 1
    assert not (await server.state()).held


@pytest.mark.parametrize("generation", [-1, 1])
async def test_a_generation_that_is_not_there(
    session: None, server: Server, generation: int
) -> None:
    with pytest.raises(InvalidField):
        await server.compact(undo_to_generation=generation)
    assert (await server.head()).revision == 1


async def test_a_proposal_changes_nothing(session: None, server: Server) -> None:
    done = await server.compact(4_000, propose_only=True, return_list=True)
    assert done.proposal is not None
    assert done.proposal.id
    assert done.proposal.done.after < done.proposal.done.before
    assert sum(slot.tokens for slot in done.shown.slots) <= 4_000
    assert (await server.head()).revision == 1
    assert await server.store.summaries(scope()) == []


async def test_who_cannot_wait_leaves_it_to_the_background(session: None, server: Server) -> None:
    done = await server.compact(4_000, no_wait=True, steering=Steering("paths", "a memory"))
    assert (done.done.reason, done.elsewhere) == (DEFERRED, True)
    (debt,) = await server.store.debts(scope())
    assert (debt.kind, b'"force":true' in debt.payload) == ("compact:asked", True)
    assert b"paths" in debt.payload
    assert b"a memory" in debt.payload
    assert await server.store.summaries(scope()) == []


async def test_calls_at_once_share_one_compaction(session: None, server: Server) -> None:
    first, second = await asyncio.gather(server.compact(4_000), server.compact(4_000))
    rows = await server.store.summaries(scope())
    assert len(server.summarizer.asked) == len(rows)
    assert first.done.summaries
    assert second.done.summaries
    assert second.generation == first.generation


async def test_an_engine_that_delegates_has_the_host_compact(serve: Serve) -> None:
    server = await serve(**{"engine.default": "legacy"})
    said = Introduction(HostFacts(b"", (COMPACTS,)))
    await server.context.bootstrap.run(TENANT, S1, said)
    await server.talk(1, 20)
    done = await server.compact(2_000, steering=Steering("paths"))
    assert done.delegation is not None
    assert done.done.reason == "delegated"
    assert done.delegation.first_sequence == 1
    assert done.delegation.last_sequence < 40
    assert done.delegation.instructions.endswith(" Keep in sight: paths")
    assert await server.store.summaries(scope()) == []


async def test_the_host_is_told_the_whole_range_also_of_a_session_read_anew(serve: Serve) -> None:
    server = await serve(**{"engine.default": "legacy"})
    said = Introduction(HostFacts(b"", (COMPACTS,)))
    await server.context.bootstrap.run(TENANT, S1, said)
    await server.talk(1, 20)
    told = (await server.compact(2_000)).delegation
    assert told is not None
    assert server.core.cache.drop(scope())
    await server.shown(2_000)
    assert (await server.compact(2_000)).delegation == told
    assert told.instructions.count("Keep in sight") == 0


async def test_the_host_is_asked_for_what_would_be_compacted_here(serve: Serve) -> None:
    server = await serve(**{"engine.default": "legacy"})
    ours = replace(S1, session="ours")
    await server.context.bootstrap.run(TENANT, S1, Introduction(HostFacts(b"", (COMPACTS,))))
    for ref in (S1, ours):
        await server.talk(1, 20, ref)
    told = (await server.compact(2_000)).delegation
    assert told is not None
    done = await server.compact(2_000, ours)
    (row,) = done.done.summaries
    assert (told.first_sequence, told.last_sequence) == (row.first_sequence, row.last_sequence)
    assert 0 < told.target_tokens < 2_000


async def test_a_host_is_not_asked_where_nothing_can_be_compacted(serve: Serve) -> None:
    server = await serve(**{"engine.default": "legacy"})
    said = Introduction(HostFacts(b"", (COMPACTS,)))
    await server.context.bootstrap.run(TENANT, S1, said)
    await server.ingest("a")
    done = await server.compact(2_000)
    assert (done.delegation, done.done.summaries) == (None, [])
    assert done.done.before == done.done.after == (await server.assemble()).tokens
    assert done.done.reason == "nothing to compact"


async def test_without_such_a_host_it_runs_here(serve: Serve) -> None:
    server = await serve(**{"engine.default": "legacy"})
    await server.talk(1, 20)
    done = await server.compact(2_000)
    assert done.delegation is None
    assert {row.origin for row in await server.store.summaries(scope())} == {"runtime"}


async def test_what_is_refused_changes_nothing(server: Server) -> None:
    with pytest.raises(SessionNotFound):
        await server.compact(4_000)
    with pytest.raises(SessionNotFound):
        await server.compact(undo_to_generation=0)
    await server.context.ingest.run(TENANT, S1, spoken("a"), None)
    with pytest.raises(RevisionMismatch) as refused:
        await server.compact(4_000, expected_revision=9)
    assert refused.value.metadata == {"expected": "9", "actual": "1"}
    with pytest.raises(RevisionMismatch):
        await server.compact(undo_to_generation=0, expected_revision=9)
    assert (await server.head()).revision == 1


async def test_a_summarizer_that_failed_is_said(session: None, server: Server) -> None:
    """What stood in for it made the view smaller; that something went wrong is told all the
    same."""
    server.summarizer.says = "I'm sorry, I can't help with that."
    done = (await server.compact(4_000)).done
    assert done.summaries
    assert done.error == "a summarizer failed, count-only stood in"
    server.summarizer.says = ""
    await server.talk(7, 6)
    assert (await server.compact(4_000)).done.error == ""


@pytest.mark.parametrize("budget", [1_200, 1_500, 2_000, 2_600, 3_000, 4_000, 4_700, 6_000, 9_000])
@pytest.mark.parametrize("turns", [6, 20])
@pytest.mark.parametrize("engine", ["dag", "legacy"])
async def test_compacted_means_that_the_next_request_is_smaller(
    serve: Serve, budget: int, turns: int, engine: str
) -> None:
    """Judged on the assembly at the caller's budget, and not on the view."""
    server = await serve(**{"engine.default": engine})
    await server.talk(1, turns)
    for _ in range(3):
        before = await server.assemble(budget)
        done = (await server.compact(budget)).done
        after = await server.assemble(budget)
        smaller = after.tokens + after.addition_tokens < before.tokens + before.addition_tokens
        assert done.compacted == (smaller and bool(done.summaries))
        if done.summaries and not smaller:
            assert done.why == UNCHANGED
            assert done.after < done.before, "what was made is kept"


@given(
    engine=st.sampled_from(("dag", "legacy")),
    rounds=st.lists(
        st.tuples(st.integers(1, 8), st.integers(20, 900), st.integers(900, 12_000)),
        min_size=1,
        max_size=4,
    ),
)
@settings(max_examples=40, deadline=None)
def test_compacted_means_smaller_whatever_was_said(
    engine: str, rounds: list[tuple[int, int, int]]
) -> None:
    """Turns of any length, compacted at any budget, once and again."""

    async def play() -> None:
        server = await Server(Rows(), **{**SMALL, "engine.default": engine}).open()
        first = 1
        for count, words, budget in rounds:
            said = turns(first, count, words)
            await server.context.ingest.run(TENANT, S1, said, None)
            first += count
            before = await server.assemble(budget)
            done = (await server.compact(budget)).done
            after = await server.assemble(budget)
            smaller = after.tokens + after.addition_tokens < before.tokens + before.addition_tokens
            assert done.compacted == (smaller and bool(done.summaries))
        await server.close()

    asyncio.run(play())


async def test_what_is_said_while_a_summary_is_written_is_no_growth(
    session: None, server: Server
) -> None:
    async def more() -> None:
        await server.talk(7, 1)

    server.summarizer.meanwhile.append(more)
    assert (await server.compact(100_000, force=True)).done.compacted


async def test_the_same_request_at_once_is_answered_once(session: None, server: Server) -> None:
    written: list[CompactDone] = []

    def encode(done: CompactDone) -> bytes:
        written.append(done)
        return b"reply %d" % len(written)

    call = CompactCall(force=True, budget=BudgetSpec(message_tokens=4_000), request=request("once"))
    run = server.context.compact.run
    replies = await asyncio.gather(*(run(TENANT, S1, call, encode, NO_TRACE) for _ in range(2)))
    assert replies == [b"reply 1", b"reply 1"]
    assert len(written) == 1


async def test_an_engine_that_cannot_judge_what_it_helped_has_another_do_so(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await serve(engines=[FRAGILE], **{"engine.on_engine_failure": "legacy"})
    await server.engines.assign.run(scope(), "fragile", {}, clear=False)
    await server.talk(1, 6)
    monkeypatch.setattr(Fragile, "how", "plan")
    done = (await server.compact(4_000)).done
    assert done.summaries
    assert done.compacted
    monkeypatch.setattr(Fragile, "how", "")
    closed = await serve(engines=[FRAGILE])
    await closed.talk(7, 6)
    monkeypatch.setattr(Fragile, "how", "plan")
    with pytest.raises(EngineFailed) as refused:
        await closed.compact(4_000)
    assert refused.value.metadata["engine"] == "fragile"


async def test_an_undo_waits_for_what_is_written(session: None, server: Server) -> None:
    await server.compact(4_000)
    others: list[asyncio.Task[object]] = []

    async def another() -> None:
        others.append(asyncio.create_task(server.compact(undo_to_generation=0)))
        for _ in range(20):
            await asyncio.sleep(0)

    server.store.before_commit.append(another)
    server.store.calls.clear()
    await server.ingest("one more")
    await asyncio.gather(*others)
    assert server.store.calls["commit"] == 2
    assert await server.store.summaries(scope()) == []


async def test_to_the_threshold_is_below_it(session: None, serve: Serve) -> None:
    """And so it is where nobody waits for it."""
    server = await serve(**{"engine.dag.contextThreshold": 0.5})
    await server.talk(7, 6)
    done = await server.compact(8_500, force=False, to_threshold=True)
    assert 0 < done.done.after <= 0.5 * 8_500
    for to_threshold, ref in ((True, S1), (False, Ref(AGENT, "s2"))):
        await server.talk(1, 6, ref)
        await server.compact(8_500, ref, no_wait=True, to_threshold=to_threshold)
        (debt,) = await server.store.debts(scope(ref))
        assert orjson.loads(debt.payload)["to_threshold"] is to_threshold


async def test_the_threshold_is_reached_later_than_what_fits(serve: Serve) -> None:
    server = await serve(**{"engine.dag.contextThreshold": 0.5})
    await server.talk(1, 6)
    assembly = await server.assemble()
    compactor, engine = server.context.compact.compactor, assembly.engine
    tokens = assembly.view.view_tokens()
    for available, fits, below in (
        (tokens - 1, False, False),
        (2 * tokens - 1, True, False),
        (2 * tokens, True, True),
    ):
        wanted = CompactionRequest(ReferenceTokens(available))
        goals = (wanted, replace(wanted, to_threshold=True))
        assert [
            compactor.reached(engine, server.core.encodings.default, assembly.view, goal)
            for goal in goals
        ] == [fits, below]


async def test_the_first_that_is_kept(server: Server) -> None:
    """What stands behind the summaries, or behind what leads the session; 0 where nothing does."""
    policy = pb.Message(role=pb.ROLE_SYSTEM, parts=[pb.Part(text=pb.TextPart(text="be kind"))])
    await server.context.ingest.run(TENANT, S1, incoming(policy), None)
    assert (await server.compact(undo_to_generation=0)).first_kept_sequence == 0
    await server.talk(1, 30)
    assert (await server.compact(undo_to_generation=0)).first_kept_sequence == 2
    server.core.cache.drop(scope())  # it reads no further back for this
    assert (await server.compact(undo_to_generation=0)).first_kept_sequence == 2
    done = await server.compact(4_000)
    last = max(row.last_sequence for row in await server.store.summaries(scope()))
    assert done.first_kept_sequence == last + 1
    assert last > 2
