"""The core stores before any engine runs, legacy included; so falling back to it, or leaving it,
loses nothing. See docs/semantics.md#engines."""

from __future__ import annotations

import pytest

from contextengine import types as t
from tests.integration.assemble.asking import (
    CODING,
    ask,
    assign,
    hashes,
    ids_of,
    judged,
    live,
    origins,
    quiet,
    say,
    settled,
    store,
    talk,
    transcripts,
    without_ids,
)
from tests.integration.assemble.judging import FITS, OVER
from tests.integration.harness import House, budget, texts

pytestmark = pytest.mark.asyncio(loop_scope="module")
STORED = t.StoredMessage.DISPOSITION_STORED


async def test_its_own_ingest_is_a_no_op_and_says_so(shared: House, session: t.SessionRef) -> None:
    await assign(shared, session, "legacy")
    one = await shared.stub.Ingest(t.IngestRequest(session=session, message=say("u1")))
    assert (one.ingested, one.stored.disposition) == (False, STORED)
    more = await shared.stub.IngestBatch(t.IngestBatchRequest(session=session, messages=talk(2)))
    assert (more.ingested_count, len(more.stored)) == (0, 4)
    assert ids_of(await shared.rows(session)) == ["u1", *ids_of(talk(2))]
    await assign(shared, session, "dag")
    noticed = await shared.stub.Ingest(t.IngestRequest(session=session, message=say("u2")))
    assert noticed.ingested


async def test_it_shows_the_list_or_else_the_whole_view(
    shared: House, session: t.SessionRef
) -> None:
    await assign(shared, session, "legacy")
    await store(shared, session, talk(20, 60))
    assert ids_of((await ask(shared, session)).items) == ids_of(talk(20))
    trimmed = talk(20, 60)[31:]
    reply = await ask(shared, session, live=live(trimmed))
    assert (ids_of(reply.items), reply.outcome) == (ids_of(trimmed), FITS)
    over = await ask(shared, session, live=live(trimmed), budget=budget(300))
    assert (over.outcome, ids_of(over.items)) == (OVER, ids_of(trimmed))
    assert await judged(shared, await ask(shared, session), session) == []


async def test_it_never_queues_a_compaction(shared: House, session: t.SessionRef) -> None:
    await assign(shared, session, "legacy")
    turn = await shared.client.after_turn(session, talk(20, 100), budget=budget(300))
    assert not turn.compaction_queued
    await ask(shared, session, budget=budget(300), current_token_count=1_000_000)
    assert (await settled(shared, session)).generation == 0


async def test_it_says_what_it_is(shared: House, session: t.SessionRef) -> None:
    await assign(shared, session, "legacy")
    engine = (await shared.client.bootstrap(session)).engine
    assert (engine.id, engine.owns_compaction, engine.compaction_threshold) == ("legacy", False, 0)
    assert engine.host_auto_compaction == t.HOST_AUTO_COMPACTION_KEEP
    await assign(shared, session, "dag")
    engine = (await shared.client.bootstrap(session)).engine
    assert (engine.owns_compaction, engine.tail_steps) == (True, 8)
    assert engine.host_auto_compaction == t.HOST_AUTO_COMPACTION_DISABLE


@pytest.mark.parametrize("order", [("dag", "legacy", "dag"), ("legacy", "dag", "legacy")])
async def test_switching_engines_keeps_the_history(
    shared: House, session: t.SessionRef, order: tuple[str, ...]
) -> None:
    """With the summaries that the other one made."""
    messages = transcripts(CODING)["d703a1a9-1b7b-4fb1-b512-c9738b1fe617"]
    await quiet(shared, session)
    for number, engine in enumerate(order):
        await assign(shared, session, engine)
        shared.forget()  # a turn goes on with the engine that it began with
        await store(shared, session, messages[number * 60 : (number + 1) * 60])
        await shared.client.compact(session, force=True, budget=budget(8_000))
        for size in (500, 8_000, 200_000):
            reply = await ask(shared, session, budget=budget(size))
            assert reply.engine_id == engine
            assert await judged(shared, reply, session) == []
        assert reply.outcome == FITS
        assert "summary" in origins(reply)
        assert ids_of(await shared.rows(session)) == ids_of(messages[: (number + 1) * 60])


@pytest.mark.parametrize("with_ids", [True, False])
async def test_a_harness_that_takes_over_the_compacted_list(
    shared: House, session: t.SessionRef, with_ids: bool
) -> None:
    """It goes on with what it was given: the summary stands in its list as it stood in ours, with
    its id or without."""
    await assign(shared, session, "legacy")
    messages = talk(20, 100)
    await store(shared, session, messages if with_ids else without_ids(messages))
    await shared.client.compact(session, force=True, budget=budget(4_000))
    held = [item.message for item in (await ask(shared, session, budget=budget(4_000))).items]
    for turn in range(4):
        held.append(say(f"u{turn}", 20))
        sent = held if with_ids else without_ids(held)
        reply = await ask(shared, session, live=live(sent, store_new=True), budget=budget(4_000))
        assert origins(reply)[0] == "summary"
        assert (reply.outcome, len(reply.stored)) == (FITS, 1)
        assert len(reply.items) == len(held)
        assert await judged(shared, reply, session) == []
    whole = await ask(shared, session, budget=budget(4_000))
    assert hashes(whole) == hashes(reply)
    # Trimmed behind the summary it is the harness's own list, and the summary still stands in it.
    trimmed = await ask(shared, session, live=live([sent[0], *sent[5:]]), budget=budget(4_000))
    assert origins(trimmed)[0] == "summary"
    assert texts(trimmed.items)[1:] == texts(held[5:])
