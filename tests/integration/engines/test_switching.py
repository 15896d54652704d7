"""Another engine for a session in mid-life, either way: the next call uses it, on the same
history."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, permutations

import pytest

from contextengine import types as t
from contextengine.messages import assistant, tool_call, tool_result, user
from contextengine_server.plugins.engines import installed_engines
from tests.integration.harness import House, budget, ref, texts

LONG = " and so on" * 60


async def assign(house: House, engine: str) -> None:
    await house.client.engines.assign(scope=ref(), engine_id=engine)


def turns(count: int, start: int = 0) -> list[t.Message]:
    said = []
    for n in range(start, start + count):
        call = tool_call(f"c{n}", "look")
        said += [
            user(f"q{n}" + LONG),
            assistant(tool_calls=[call]),
            tool_result(f"c{n}", f"r{n}" + LONG),
        ]
        said.append(assistant(f"a{n}"))
    return said


@pytest.mark.parametrize(
    "order", [("dag", "legacy", "dag"), ("legacy", "dag", "legacy"), ("dag", "dag", "legacy")]
)
async def test_the_history_stays_whatever_the_order(house: House, order: tuple[str, ...]) -> None:
    written: list[str] = []
    for n, engine in enumerate(order):
        await assign(house, engine)
        new = turns(3, n * 3)
        reply = await house.client.assemble(ref(), ingest=new)
        written += texts(new)
        assert reply.engine_id == engine
        assert texts(reply.items) == written
        assert (await house.client.get_status(ref())).engine.id == engine
        await house.restart()
    assert texts(await house.rows(ref())) == written


async def test_every_rpc_sees_the_other_engine_at_once(house: House) -> None:
    await house.client.ingest_batch(ref(), turns(2))
    assert (await house.client.ingest(ref(), user("x"))).ingested
    await assign(house, "legacy")
    stored = await house.client.ingest(ref(), user("y"))
    assert not stored.ingested, "legacy's own ingest is a no-op"
    assert stored.stored.disposition == t.StoredMessage.DISPOSITION_STORED
    batch = await house.client.ingest_batch(ref(), [user("z")])
    assert batch.ingested_count == 0
    assert (await house.client.bootstrap(ref())).engine.id == "legacy"
    assert "legacy" in (await house.client.maintain(ref())).reason


async def test_the_epoch_says_that_another_engine_served(house: House) -> None:
    before = await house.client.assemble(ref(), ingest=turns(2))
    await assign(house, "legacy")
    after = await house.client.assemble(
        ref(), known_context_hash=before.context_hash, known_epoch=before.context_projection.epoch
    )
    assert after.cache.epoch_cause == t.EPOCH_CAUSE_ENGINE
    await assign(house, "dag")
    back = await house.client.assemble(
        ref(), known_context_hash=before.context_hash, known_epoch=before.context_projection.epoch
    )
    assert back.cache.epoch_cause == t.EPOCH_CAUSE_UNSPECIFIED
    assert back.context_projection.epoch == before.context_projection.epoch


async def test_what_one_engine_evicts_the_other_still_has(house: House) -> None:
    said = turns(20)
    await house.client.ingest_batch(ref(), said)
    small = budget(1_500)
    evicted = await house.client.assemble(ref(), budget=small)
    assert evicted.outcome == t.AssembleResponse.OUTCOME_FITS
    assert len(evicted.items) < len(said)
    await assign(house, "legacy")
    whole = await house.client.assemble(ref(), budget=small)
    assert whole.outcome == t.AssembleResponse.OUTCOME_OVER_BUDGET, "legacy never evicts"
    assert texts(whole.items) == texts(said)
    await assign(house, "dag")
    assert (await house.client.assemble(ref(), budget=small)).items == evicted.items


@pytest.mark.parametrize(("first", "second"), [("dag", "legacy"), ("legacy", "dag")])
async def test_summaries_of_one_engine_serve_the_other(
    house: House, first: str, second: str
) -> None:
    said = turns(20)
    await house.client.ingest_batch(ref(), said)
    await assign(house, first)
    done = await house.client.compact(ref(), force=True, budget=budget(2_500))
    assert done.summaries
    before = await house.client.assemble(ref())
    summaries = [item for item in before.items if item.HasField("summary")]
    assert summaries
    await assign(house, second)
    after = await house.client.assemble(ref())
    assert [item for item in after.items if item.HasField("summary")] == summaries
    assert texts(after.items) == texts(before.items)
    more = await house.client.compact(ref(), force=True, budget=budget(1_200))
    assert (
        await house.client.assemble(ref(), budget=budget(1_200))
    ).outcome == 1 or not more.summaries
    await assign(house, first)
    await house.client.assemble(ref())
    assert texts(await house.rows(ref())) == texts(said), "whatever is shown, all is stored"


async def test_open_calls_stay_open_through_a_switch(house: House) -> None:
    await house.client.ingest_batch(
        ref(), [user("go"), assistant(tool_calls=[tool_call("c1", "look")])]
    )
    for engine in ("legacy", "dag", "legacy"):
        await assign(house, engine)
        assert texts((await house.client.assemble(ref())).items) == ["go", "call:look"]
    reply = await house.client.assemble(ref(), ingest=[tool_result("c1", "found")])
    assert texts(reply.items) == ["go", "call:look", "found"]


async def test_an_agent_wide_choice_switches_sessions_in_mid_life(house: House) -> None:
    for name in ("s1", "s2"):
        await house.client.ingest_batch(ref(name), turns(2))
    await house.client.engines.assign(scope=t.SessionRef(agent_id="agent"), engine_id="legacy")
    for name in ("s1", "s2"):
        reply = await house.client.assemble(ref(name))
        assert (reply.engine_id, texts(reply.items)) == ("legacy", texts(turns(2)))


def every_switch(engines: Sequence[str]) -> list[str]:
    """A walk that goes from each of them to each other."""
    walk: list[str] = []
    for at, here in enumerate(engines):
        walk.append(here)
        for there in engines[at + 1 :]:
            walk += [there, here]
    return walk


async def test_a_session_goes_through_every_switch_between_our_engines(house: House) -> None:
    """From each of them to each other, with new turns and a compaction in between: nothing is lost,
    every answer is lawful and says who gave it, and what was summarized stays so."""
    ours = installed_engines().of("core").ids
    walk = every_switch(ours)
    assert set(permutations(ours, 2)) <= set(pairwise(walk))
    written: list[str] = []
    before = 0
    for n, engine in enumerate(walk):
        await assign(house, engine)
        new = turns(1, n)
        reply = await house.client.assemble(ref(), ingest=new, budget=budget(3_000))
        written += texts(new)
        assert reply.engine_id == engine
        assert reply.outcome != t.AssembleResponse.OUTCOME_DEGRADED
        assert f"q{n}{LONG}" in texts(reply.items)
        await house.client.compact(ref(), force=True, budget=budget(3_000))
        shown = await house.client.assemble(ref(), budget=budget(3_000))
        assert shown.outcome == t.AssembleResponse.OUTCOME_FITS, engine
        covered = max(
            (item.summary.last_sequence for item in shown.items if item.HasField("summary")),
            default=0,
        )
        assert covered >= before, f"{engine} shows again what was summarized"
        before = covered
        if n == len(walk) // 2:
            await house.restart()
    assert texts(await house.rows(ref())) == written
    report = await house.client.engines.doctor(session=ref())
    assert not [one for one in report.checks if one.status == t.DoctorResponse.STATUS_ERROR]
