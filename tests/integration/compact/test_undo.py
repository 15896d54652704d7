"""`undo_to_generation` takes compactions back. Nothing was deleted, so all of it comes back; and it
stays so until a compaction is forced. See docs/semantics.md#undo."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from tests.integration.assemble.asking import (
    ask,
    assign,
    calls,
    hashes,
    ids_of,
    judged,
    origins,
    owed,
    result,
    say,
    settled,
    store,
    talk,
)
from tests.integration.harness import House, budget, problem, ref, texts

from .summarizers import Gated
from .test_folding import SMALL

pytestmark = pytest.mark.asyncio(loop_scope="module")
EVERYTHING = budget(100_000)


@pytest.fixture
def own_summarizer(shared: House) -> Iterator[None]:
    core, before = shared.app.core, shared.app.core.summaries.summarizer
    yield
    core.summaries.summarizer = before


async def undo(
    house: House, session: t.SessionRef, generation: int, **more: Any
) -> t.CompactResponse:
    return await house.client.compact(session, undo_to_generation=generation, **more)


async def held(house: House, session: t.SessionRef) -> bool:
    status = await house.client.get_status(session)
    return bool(json.loads(status.engine_status_json)["held"])


async def test_every_generation_comes_back_as_it_was(shared: House, session: t.SessionRef) -> None:
    """Leaves and folds alike, one generation after the other, and the messages at the end."""
    await assign(shared, session, "dag", **SMALL)
    await store(shared, session, talk(60, 100))
    shown: dict[int, list[str]] = {}
    while True:
        status = await shared.client.get_status(session)
        shown[status.generation] = ids_of((await ask(shared, session, budget=EVERYTHING)).items)
        size = budget(max(500, status.view_tokens - 500))
        done = await shared.client.compact(session, force=True, budget=size)
        if not done.summaries:
            break
    assert max(shown) > 10
    for generation in sorted(shown, reverse=True)[1:]:
        back = await undo(shared, session, generation)
        assert (back.compacted, back.ok, back.generation) == (False, True, generation)
        assert back.tokens_after > back.tokens_before
        reply = await ask(shared, session, budget=EVERYTHING)
        assert ids_of(reply.items) == shown[generation]
        assert await judged(shared, reply, session) == []
        status = await shared.client.get_status(session)
        assert (status.generation, status.view_tokens) == (generation, back.tokens_after)
        exported = (await shared.export(session)).summaries
        live = [s for s in exported if not s.info.retired_revision]
        assert status.summary_count == len(live)
        assert all(s.info.generation <= generation for s in live)
    assert ids_of(reply.items) == ids_of(talk(60)) == ids_of(await shared.rows(session))
    await shared.restart()
    assert (await ask(shared, session, budget=EVERYTHING)).items == reply.items


@pytest.mark.parametrize("engine", ["dag", "legacy"])
async def test_the_summaries_that_another_stood_in_for_come_back(
    shared: House, session: t.SessionRef, engine: str
) -> None:
    await assign(shared, session, engine)
    await store(shared, session, talk(20, 100))
    first = await shared.client.compact(session, force=True, budget=budget(2_000))
    await store(shared, session, talk(20, 100, "n"))
    before = await ask(shared, session, budget=EVERYTHING)
    summary = await shared.client.record_host_change(
        session,
        compacted=t.RecordHostChangeRequest.HostCompaction(
            first_sequence=1, last_sequence=60, summary="the host's own words"
        ),
    )
    assert set(summary.summary.children) == {s.id for s in first.summaries}
    assert "the host's own words" in texts((await ask(shared, session, budget=EVERYTHING)).items)[0]
    await undo(shared, session, first.generation)
    assert hashes(await ask(shared, session, budget=EVERYTHING)) == hashes(before)


async def test_nothing_is_compacted_until_that_is_forced(
    shared: House, session: t.SessionRef
) -> None:
    await assign(shared, session, "dag")
    await store(shared, session, talk(20, 100))
    await shared.client.compact(session, force=True, budget=budget(2_000))
    await undo(shared, session, 0)
    assert await held(shared, session)
    turn = await shared.client.after_turn(session, talk(5, 100, "n"), budget=budget(2_000))
    assert not turn.compaction_queued
    await ask(shared, session, budget=budget(2_000))
    await settled(shared, session)
    unforced = await shared.client.compact(session, budget=budget(2_000))
    assert (unforced.compacted, unforced.ok) == (False, True)
    assert "nothing to compact" in unforced.reason
    assert (await shared.client.get_status(session)).generation == 0
    await shared.restart()
    assert await held(shared, session)
    assert (await shared.client.compact(session, force=True, budget=budget(2_000))).summaries
    assert not await held(shared, session)
    await store(shared, session, talk(20, 100, "p"))
    generation = (await shared.client.get_status(session)).generation
    await ask(shared, session, budget=budget(2_000))
    assert (await settled(shared, session)).generation > generation


async def test_a_summary_in_the_making_is_not_committed(
    shared: House, session: t.SessionRef, own_summarizer: None
) -> None:
    """Not even where the session has come to the same generation again meanwhile."""
    await assign(shared, session, "dag", **SMALL)
    await store(shared, session, talk(20, 100))
    first = await shared.client.compact(session, force=True, budget=budget(3_500))
    assert first.summaries
    gated = Gated(shared)
    running = asyncio.ensure_future(shared.client.compact(session, budget=budget(1_000)))
    await gated.reached.wait()
    await undo(shared, session, 0)
    gated.gate.set()
    late = await running
    assert (late.compacted, late.generation) == (False, 0)
    assert ids_of((await ask(shared, session, budget=EVERYTHING)).items) == ids_of(talk(20))
    assert await owed(shared, session) == 0


async def test_what_cannot_be_undone_is_said(shared: House, session: t.SessionRef) -> None:
    await store(shared, session, talk(20, 100))
    await shared.client.compact(session, force=True, budget=budget(2_000))
    status = await shared.client.get_status(session)
    for wrong in (status.generation + 1, -1):
        with pytest.raises(ContextEngineError) as refused:
            await undo(shared, session, wrong)
        assert problem(refused.value) == (
            "INVALID_ARGUMENT",
            "INVALID_FIELD",
            ["undo_to_generation"],
        )
        assert f"0 to {status.generation}" in str(refused.value)
    with pytest.raises(ContextEngineError) as both:
        await undo(shared, session, 0, force=True)
    assert problem(both.value)[2] == ["undo_to_generation", "force"]
    with pytest.raises(ContextEngineError) as stale:
        await undo(shared, session, 0, expected_revision=1)
    assert problem(stale.value)[0] == "FAILED_PRECONDITION"
    with pytest.raises(ContextEngineError) as missing:
        await undo(shared, ref("no such session"), 0)
    assert missing.value.code.name == "NOT_FOUND"
    assert await shared.client.get_status(session) == status
    same = await undo(shared, session, status.generation)
    assert (same.revision, same.tokens_before) == (status.revision, same.tokens_after)
    assert not await held(shared, session)


async def test_an_undo_is_answered_once(shared: House, session: t.SessionRef) -> None:
    await store(shared, session, talk(20, 100))
    await shared.client.compact(session, force=True, budget=budget(2_000))
    first = await undo(shared, session, 0, request_id="undo")
    await shared.client.compact(session, force=True, budget=budget(2_000))
    assert await undo(shared, session, 0, request_id="undo") == first
    assert (await shared.client.get_status(session)).generation > 0


async def test_a_late_result_that_came_for_a_summary_stays_the_note_it_was(
    shared: House, session: t.SessionRef
) -> None:
    """And one that comes after the undo takes its place behind its call."""
    await store(shared, session, [calls("a0", "early", "later"), *talk(20, 100)])
    await shared.client.compact(session, force=True, budget=budget(2_000))
    await store(shared, session, [result("r0", "early", 5), *talk(1, 5, "n")])
    noted = await ask(shared, session, budget=EVERYTHING)
    assert noted.items[-3].form == t.FORM_NOTE
    await undo(shared, session, 0)
    await store(shared, session, [result("r1", "later", 5)])
    reply = await ask(shared, session, budget=EVERYTHING)
    assert [item.form for item in reply.items].count(t.FORM_NOTE) == 1
    assert origins(reply)[:3] == ["1", "synthetic", "45"]
    assert ids_of(reply.items)[-3:] == ids_of(noted.items)[-3:]
    shared.forget()
    assert (await ask(shared, session, budget=EVERYTHING)).items == reply.items
    await shared.restart()
    assert (await ask(shared, session, budget=EVERYTHING)).items == reply.items


async def test_it_is_told_to_those_who_watch(shared: House, session: t.SessionRef) -> None:
    await store(shared, session, talk(20, 100))
    await shared.client.compact(session, force=True, budget=budget(2_000))
    names = ["context:compaction_undone"]
    async with shared.client.sessions.watch(agent_id="agent", name_prefixes=names) as events:
        await events._call.initial_metadata()
        await store(shared, session, [say("u")])
        await undo(shared, session, 0)
        event = await anext(aiter(events))
    assert event.counts["generation"] == 0
    assert event.counts["undone"] >= 1
