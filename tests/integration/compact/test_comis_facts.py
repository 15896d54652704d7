"""What Comis's context DAG, one of the engines that `dag` stands for, promises of compaction, fact
by fact, over a real channel. The numbers are those of the collected facts."""

from __future__ import annotations

import pytest

from contextengine import types as t
from contextengine_server.summarize.request import SummarizerFailed, SummaryRequest
from tests.integration.assemble.asking import (
    ask,
    assign,
    calls,
    hashes,
    judged,
    origins,
    quiet,
    result,
    say,
    settled,
    store,
    talk,
)
from tests.integration.harness import House, budget, ref, texts

from .summarizers import Counting, Gated
from .test_folding import SMALL
from .test_lossless_claw_facts import EVERYTHING, compacted, own_summarizer, speaks, texts_made

__all__ = ["own_summarizer"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_comis_91_a_leaf_stands_in_the_middle_and_no_message_is_gone(
    shared: House, session: t.SessionRef
) -> None:
    await assign(shared, session, "legacy")
    await store(shared, session, [say(f"m{n}", 200) for n in range(1, 6)])
    change = t.RecordHostChangeRequest.HostCompaction(
        first_sequence=2, last_sequence=4, summary="the middle"
    )
    await shared.client.record_host_change(session, compacted=change)
    reply = await ask(shared, session, budget=EVERYTHING)
    assert origins(reply) == ["1", "summary", "5"]
    assert len(await shared.rows(session)) == 5


async def test_comis_95_a_leaf_of_one_session_changes_no_other(
    shared: House, session: t.SessionRef
) -> None:
    others = [ref(f"{session.session_id} other"), ref(session.session_id, agent="another")]
    for each in others:
        await store(shared, each, talk(20, 100))
    before = [hashes(await ask(shared, each, budget=EVERYTHING)) for each in others]
    assert (await compacted(shared, session)).summaries
    assert [hashes(await ask(shared, each, budget=EVERYTHING)) for each in others] == before
    for each in others:
        assert (await shared.client.get_status(each)).summary_count == 0


async def test_comis_97_a_chunk_ends_on_the_results_of_its_calls(
    shared: House, session: t.SessionRef
) -> None:
    """Wherever the bound of a chunk falls. (W10: a pair is never parted by a leaf.)"""
    await assign(shared, session, "dag", **SMALL)
    messages = []
    for step in range(30):
        ids = [f"c{step}-{n}" for n in range(1 + step % 3)]
        messages.append(calls(f"a{step}", *ids))
        messages += [result(f"r{each}", each, 40 + 17 * step % 90) for each in ids]
    await store(shared, session, messages)
    await quiet(shared, session)
    done = await shared.client.compact(session, force=True, budget=budget(1_500))
    begins = {n for n, message in enumerate(messages, 1) if message.role == t.ROLE_ASSISTANT}
    assert len(done.summaries) > 3
    for summary in done.summaries:
        assert summary.first_sequence in begins
        assert summary.last_sequence + 1 in begins
    assert await judged(shared, await ask(shared, session, budget=EVERYTHING), session) == []


@pytest.mark.parametrize("broken", ["says far too much", "throws"])
async def test_comis_99_what_no_summarizer_manages_the_note_that_counts_does(
    shared: House, session: t.SessionRef, broken: str
) -> None:
    def speak(request: SummaryRequest) -> str:
        if broken == "throws":
            raise SummarizerFailed("out of words")
        return "on and on " * 50_000

    speaks(shared, speak)
    done = await compacted(shared, session)
    [summary] = done.summaries
    assert (summary.fallback, summary.summarizer) == (True, "count-only")
    assert summary.tokens < min(512, summary.source_tokens)
    [text] = await texts_made(shared, session)
    assert f"{summary.message_count} messages" in text
    assert "can be expanded" in text
    shown = texts((await ask(shared, session, budget=EVERYTHING)).items)[0]
    assert "fallback=true" in shown.split("\n")[0]


async def test_comis_101_a_tenant_over_its_cap_gets_summaries_without_its_model(
    shared: House, session: t.SessionRef
) -> None:
    """What the request says of whose account it is; that the account binds is shown where the
    summarizers are."""
    counting = Counting(shared, session)
    await compacted(
        shared,
        session,
        summarizerSpend={"maxTokensPerTenantPerHour": 7, "maxTokensPerTenantPerDay": 9},
    )
    [request] = counting.asked
    assert request.tenant == "default"
    assert request.policy is not None
    spend = request.policy.spend
    assert (spend.per_hour, spend.per_day) == (7, 9)


async def test_comis_105_ingest_does_not_wait_for_a_slow_pass(
    shared: House, session: t.SessionRef
) -> None:
    gated = Gated(shared)
    await store(shared, session, talk(20, 100))
    await ask(shared, session, budget=budget(4_000))
    await gated.reached.wait()
    await store(shared, session, [say("next")])
    assert (await shared.client.get_status(session)).generation == 0
    gated.gate.set()
    assert (await settled(shared, session)).generation > 0
