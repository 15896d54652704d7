"""Compaction in the background: owed, not awaited; one job at a time for a session; what is
appended meanwhile is all there; a drain loses nothing of what was committed, a restart nothing of
what is owed."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from contextengine import types as t
from contextengine_server.compaction import jobs
from contextengine_server.summarize import SummarizerChain
from tests.integration.assemble.asking import (
    ask,
    assign,
    calls,
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
from tests.integration.assemble.judging import FITS
from tests.integration.compact.summarizers import Counting, Gated
from tests.integration.harness import PATIENCE_S, Clock, House, budget, ref
from tests.integration.harness import house as living

from .sessions import long

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_turn_ends_at_once(alone: House) -> None:
    """While the summarizer takes as long as it likes."""
    gated = Gated(alone)
    turn = await alone.client.after_turn(ref(), talk(20, 100), budget=budget(6_000))
    assert turn.compaction_queued
    await gated.reached.wait()
    again = await alone.client.after_turn(ref(), talk(1, 3, "n"), budget=budget(6_000))
    assert again.compaction_queued
    reply = await ask(alone, ref(), budget=budget(6_000))
    assert (reply.outcome, "summary" in origins(reply)) == (FITS, False)
    assert [job.state for job in (await alone.client.get_status(ref())).jobs] == ["running"]
    gated.gate.set()
    status = await settled(alone, ref())
    assert status.generation > 0
    assert status.view_tokens <= 0.75 * 6_000
    reply = await ask(alone, ref(), budget=budget(6_000))
    assert "summary" in origins(reply)
    assert await judged(alone, reply, ref()) == []


async def test_below_the_threshold_nothing_is_owed(alone: House) -> None:
    turn = await alone.client.after_turn(ref(), talk(20, 100), budget=budget(50_000))
    assert not turn.compaction_queued
    assert await owed(alone, ref()) == 0
    size = 2 * (await alone.client.get_status(ref())).view_tokens
    measured = await alone.client.after_turn(
        ref(), [say("u9")], budget=budget(size), current_token_count=size
    )
    assert measured.compaction_queued


async def test_what_is_appended_meanwhile_is_all_there(alone: House) -> None:
    tokens = await long(alone, ref())
    gated = Gated(alone)
    await ask(alone, ref(), budget=budget(tokens))
    await gated.reached.wait()
    written = []
    for number in range(30):
        message = say(f"n{number}", 5)
        reply = await ask(alone, ref(), ingest=[message], budget=budget(100_000))
        assert ids_of(reply.items)[-1] == message.id
        written.append(message.id)
        if number == 15:
            gated.gate.set()
    status = await settled(alone, ref())
    assert status.generation > 0
    assert ids_of(await alone.rows(ref())) == [*ids_of(talk(20)), *written]
    reply = await ask(alone, ref(), budget=budget(100_000))
    assert ids_of(reply.items)[-30:] == written
    assert await judged(alone, reply, ref()) == []
    alone.forget()
    assert (await ask(alone, ref(), budget=budget(100_000))).items == reply.items


@pytest.mark.parametrize("change", ["rewind", "reset", "late", "delete"])
async def test_what_the_ground_is_taken_from_is_not_committed(alone: House, change: str) -> None:
    """The host goes back, the session is emptied, a late result reopens it, or it is erased, while
    a summary is being made."""
    await store(alone, ref(), [t.Message(id="a0", role=t.ROLE_ASSISTANT, parts=[_call("late")])])
    tokens = await long(alone, ref())
    gated = Gated(alone)
    await ask(alone, ref(), budget=budget(tokens))
    await gated.reached.wait()
    if change == "rewind":
        rewind = t.RecordHostChangeRequest.Rewind(after_sequence=5)
        await alone.client.record_host_change(ref(), rewind=rewind)
    elif change == "reset":
        await alone.client.reset_session(ref())
    elif change == "late":
        parts = [t.Part(tool_result=t.ToolResultPart(call_id="late", parts=say("x").parts))]
        await store(alone, ref(), [t.Message(id="r0", role=t.ROLE_TOOL, parts=parts)])
    else:
        await alone.client.sessions.delete(ref())
        await store(alone, ref(), talk(2, 3, "n"))
    gated.gate.set()
    await settled(alone, ref())
    reply = await ask(alone, ref(), budget=budget(100_000))
    assert await judged(alone, reply, ref()) == []
    expected = {"rewind": 5, "reset": 0, "delete": 4}
    if change in expected:
        shown = [origin for origin in origins(reply) if origin != "synthetic"]
        assert shown == [str(n + 1) for n in range(expected[change])]
    else:
        shown = [origin for origin in origins(reply) if origin not in ("summary", "synthetic")]
        assert shown[-1] == "41"


def _call(call_id: str) -> t.Part:
    return t.Part(tool_call=t.ToolCallPart(call_id=call_id, name="run"))


async def test_one_job_at_a_time_for_a_session(alone: House) -> None:
    running = peak = 0

    class Watched(Counting):
        async def summarize(self, request):
            nonlocal running, peak
            running += 1
            peak = max(peak, running)
            await asyncio.sleep(0.02)
            result = await super().summarize(request)
            running -= 1
            return result

    tokens = await long(alone, ref(), turns=40)
    watched = Watched(alone)
    calls = [ask(alone, ref(), budget=budget(size)) for size in range(tokens // 4, tokens, 1_000)]
    turns = [
        alone.client.after_turn(ref(), [say(f"n{n}")], budget=budget(tokens // 2))
        for n in range(10)
    ]
    forced = [alone.client.compact(ref(), force=True, budget=budget(tokens // 2)) for _ in range(3)]
    await asyncio.gather(*calls, *turns, *forced)
    status = await settled(alone, ref())
    assert (peak, status.generation) == (1, len(watched.asked))
    covered = [
        (s.info.first_sequence, s.info.last_sequence) for s in (await alone.export(ref())).summaries
    ]
    assert covered == sorted(covered)
    assert all(before[1] < after[0] for before, after in pairwise(covered))
    assert await judged(alone, await ask(alone, ref(), budget=budget(100_000)), ref()) == []


async def test_a_debt_outlives_a_restart_and_is_paid(tmp_path: Path) -> None:
    """The lease was given back: the next life need not wait for its end, and by this clock it never
    comes."""
    async with living(tmp_path, clock=Clock()) as still:
        tokens = await long(still, ref())
        gated = Gated(still)
        await ask(still, ref(), budget=budget(tokens))
        await gated.reached.wait()
        await still.stop()
        await still.start()
        status = await settled(still, ref())
        assert status.generation > 0
        assert status.view_tokens <= 0.75 * tokens


async def test_a_drain_cancels_and_loses_nothing_that_was_committed(alone: House) -> None:
    """Stopped between two passes: the first stays, the rest is owed."""
    await assign(alone, ref(), leafChunkTokens=1_000, leafTargetTokens=200)
    tokens = await long(alone, ref(), turns=40)

    class OneThenNoMore(Counting):
        """Hands the first on, and keeps the second."""

        second = asyncio.Event()

        async def summarize(self, request):
            if self.asked:
                self.second.set()
                await asyncio.Event().wait()
            return await super().summarize(request)

    stopped = OneThenNoMore(alone)
    await ask(alone, ref(), budget=budget(tokens // 2))
    await stopped.second.wait()
    committed = (await alone.export(ref())).summaries
    assert len(committed) == 1
    await asyncio.wait_for(alone.stop(), PATIENCE_S)
    await alone.start()
    status = await settled(alone, ref())
    assert (await alone.export(ref())).summaries[0] == committed[0]
    assert status.generation > 1
    # What is owed is done as without a drain: down to the share at which compaction begins.
    assert status.view_tokens <= 0.95 * (tokens // 2)
    assert ids_of(await alone.rows(ref())) == ids_of(talk(40))


async def test_a_turn_may_wait_for_its_compaction(tmp_path: Path) -> None:
    """`deferCompaction: false`."""
    async with living(tmp_path, **{"engine.dag.deferCompaction": False}) as house:
        counting = Counting(house)
        turn = await house.client.after_turn(ref(), talk(20, 100), budget=budget(6_000))
        assert not turn.compaction_queued
        assert counting.asked
        status = await house.client.get_status(ref())
        assert status.view_tokens <= 0.75 * 6_000
        # By one for what was stored, by one for each pass.
        assert turn.revision == status.revision == 1 + status.generation
        # Facts that took too long to keep may be owed: for those nobody waits.
        assert {job.kind for job in status.jobs} <= {"memory"}


async def test_events_tell_of_it(alone: House) -> None:
    """That a job began, what it made, and how it ended."""
    names = ["context:dag_", "background:"]
    seen: list[t.WatchResponse] = []
    async with alone.client.sessions.watch(agent_id="agent", name_prefixes=names) as events:
        await events._call.initial_metadata()
        tokens = await long(alone, ref())
        await ask(alone, ref(), budget=budget(tokens))
        async for event in events:
            seen.append(event)
            if event.name == "background:ended":
                break
    names = [event.name for event in seen]
    assert names == ["background:started", "context:dag_compacted", "background:ended"]
    started, made, ended = seen
    assert {event.session_id for event in seen} == {"s1"}
    [summary] = (await alone.export(ref())).summaries
    assert made.attributes["summary"] == summary.info.id
    assert made.counts["messages"] == summary.info.message_count
    assert (made.counts["leaf_summaries_created"], made.counts["condensed_summaries_created"]) == (
        1,
        0,
    )
    assert dict(started.attributes) == {"kind": "compact"}
    assert dict(ended.attributes) == {"kind": "compact", "outcome": "done"}


async def test_what_the_harness_measured_is_known_to_the_job(alone: House) -> None:
    """By our own count there would be nothing to do."""
    tokens = await long(alone, ref())
    size = budget(2 * tokens)
    turn = await alone.client.after_turn(
        ref(), [say("u9")], budget=size, current_token_count=2 * tokens
    )
    assert turn.compaction_queued
    assert (await settled(alone, ref())).generation == 1
    other = ref("other")
    await long(alone, other)
    await ask(alone, other, budget=size, current_token_count=2 * tokens)
    assert (await settled(alone, other)).generation == 1


async def compactions(house: House) -> list[t.BackgroundJob]:
    """The compactions that the session owes."""
    return [job for job in (await house.client.get_status(ref())).jobs if job.kind == "compact"]


class ByHand:
    """asyncio for the background: a job's deadline passes when a test says so."""

    def __init__(self, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self._of_the_job = asyncio.timeout(None)

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    def timeout(self, seconds: float) -> asyncio.Timeout:
        if seconds != self._deadline_s:
            return asyncio.timeout(seconds)
        self._of_the_job = asyncio.timeout(None)
        return self._of_the_job

    def pass_by(self) -> None:
        """The deadline of the job that runs is now."""
        self._of_the_job.reschedule(asyncio.get_running_loop().time())


async def test_a_job_is_bounded_by_its_deadline(
    alone: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it made by then stays, and it goes on; where it made nothing it is tried again later."""
    core, background = alone.app.core, alone.app.background
    core.summaries.summarizer = SummarizerChain([], core.encodings.default.count)
    await assign(alone, ref(), leafChunkTokens=1_000, leafTargetTokens=200)
    tokens = await long(alone, ref(), turns=40)
    deadline = ByHand(background.deadline_s)
    monkeypatch.setattr(jobs, "asyncio", deadline)

    class OneAJob(Counting):
        """Makes one summary of every job, and hangs over the next."""

        hung = 0
        hangs = asyncio.Event()

        async def summarize(self, request):
            if len(self.asked) > self.hung:
                self.hung = len(self.asked)
                self.hangs.set()
                await asyncio.Event().wait()
            return await super().summarize(request)

    slow = OneAJob(alone)
    await ask(alone, ref(), budget=budget(tokens - 2_000))
    await slow.hangs.wait()
    slow.hangs.clear()
    deadline.pass_by()
    await slow.hangs.wait()
    [job] = await compactions(alone)
    assert (job.state, job.last_error) == ("running", "")
    assert (await alone.client.get_status(ref())).generation == 2
    core.summaries.summarizer = slow.inner
    deadline.pass_by()
    assert (await settled(alone, ref())).view_tokens <= 0.9 * tokens
    gated = Gated(alone)
    await store(alone, ref(), talk(20, 100, "n"))
    await ask(alone, ref(), budget=budget(tokens - 2_000))
    await gated.reached.wait()
    deadline.pass_by()
    while not (owing := await compactions(alone))[0].last_error:
        await asyncio.sleep(0.02)
    assert (owing[0].state, owing[0].last_error) == ("waiting", "TimeoutError")


async def test_a_long_tool_loop_is_compacted_in_the_middle_of_its_turn(alone: House) -> None:
    """One request and hundreds of steps: the history of the turn itself is summarized, and the
    request stays in sight."""
    await assign(alone, ref(), leafChunkTokens=4_000, leafTargetTokens=400)
    await store(alone, ref(), [say("u1", 30)])
    for step in range(60):
        step_messages = [calls(f"a{step}", f"c{step}"), result(f"r{step}", f"c{step}", 150)]
        reply = await ask(alone, ref(), ingest=step_messages, budget=budget(10_000))
        assert reply.outcome == FITS
        assert "u1" in ids_of(reply.items)
        assert ids_of(reply.items)[-1] == f"r{step}"
        if step % 10 == 9:
            await settled(alone, ref())
            assert await judged(alone, await ask(alone, ref(), budget=budget(10_000)), ref()) == []
    status = await alone.client.get_status(ref())
    assert status.generation >= 2
    assert status.message_tokens > 15_000
    # Everything that left is in a summary: of 121 messages not one is merely gone.
    whole = await ask(alone, ref(), budget=budget(10_000), explain=True)
    kinds = {decision.kind for decision in whole.decisions}
    assert t.Decision.KIND_EVICTED not in kinds
    assert t.Decision.KIND_SUMMARIZED in kinds
