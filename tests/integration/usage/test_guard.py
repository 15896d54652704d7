"""The token guard: a call that would pass a cap is refused before anything is stored, and passes
again when the window has moved on, after a restart as well."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.messages import assistant, user
from tests.integration.harness import Clock, House, ref
from tests.integration.harness import house as living

CAPS = {
    "usage.guard.engines": ["dag"],
    "usage.guard.per_execution": 40_000,
    "usage.guard.per_hour": 60_000,
    "usage.guard.per_day": 100_000,
}


@pytest.fixture
async def capped(tmp_path: Path, clock: Clock) -> AsyncIterator[House]:
    """A service that lives by `clock`, with small caps."""
    async with living(tmp_path, clock=clock, **CAPS) as house:
        yield house


async def spend(house: House, tokens: int, session: str = "s1", agent: str = "agent") -> None:
    await house.client.report_usage(ref(session, agent=agent), usage=t.Usage(input_tokens=tokens))


async def turn(house: House, name: str, session: str = "s1") -> t.AssembleResponse:
    """The first call of a turn: about 8,200 tokens, most of them the reserve for its answer."""
    return await house.client.assemble(ref(session), ingest=[user(f"go on {name}", id=name)])


async def refused(house: House, name: str, session: str = "s1") -> ContextEngineError:
    with pytest.raises(ContextEngineError) as caught:
        await turn(house, name, session)
    error = caught.value
    assert (error.code.name, error.reason) == ("RESOURCE_EXHAUSTED", "BUDGET_SPENT")
    return error


async def test_an_hour_is_full_and_moves_on(capped: House, clock: Clock) -> None:
    await turn(capped, "m1")
    await spend(capped, 30_000)
    clock.advance(600)
    await turn(capped, "m2")
    await spend(capped, 25_000)
    revision = (await capped.client.get_status(ref())).revision
    error = await refused(capped, "m3")
    assert error.metadata["scope"] == "per-hour"
    assert error.metadata["used"] == "55000"
    assert error.metadata["cap"] == "60000"
    assert 8_192 < int(error.metadata["estimated"]) < 9_000
    # The 30,000 leave the window first: an hour after they came.
    assert error.retry_after is not None
    assert error.retry_after == pytest.approx(3_000, abs=0.1)
    status = await capped.client.get_status(ref())
    assert (status.revision, status.message_count) == (revision, 2), "nothing was stored"
    await capped.restart()
    await refused(capped, "m3")
    clock.advance(error.retry_after)
    await turn(capped, "m3")


async def test_a_day_is_full(capped: House, clock: Clock) -> None:
    for hour in range(3):
        await turn(capped, f"m{hour}")
        await spend(capped, 31_000)
        clock.advance(3_700)
    error = await refused(capped, "m9")
    assert (error.metadata["scope"], error.metadata["used"]) == ("per-day", "93000")
    clock.advance(24 * 3_600 - 3 * 3_700)
    await refused(capped, "m9")
    clock.advance(1)
    await turn(capped, "m9")


async def test_an_execution_ends_with_the_next_user_message(capped: House) -> None:
    await turn(capped, "m1")
    await spend(capped, 35_000)
    with pytest.raises(ContextEngineError) as caught:
        await capped.client.assemble(ref(), ingest=[assistant("still at it", id="a1")])
    error = caught.value
    assert (error.metadata["scope"], error.metadata["used"]) == ("per-execution", "35000")
    assert error.retry_after is None, "no time helps"
    await turn(capped, "m2")
    status = (await capped.client.get_status(ref())).token_guard
    assert (status.execution_tokens, status.max_execution_tokens) == (0, 40_000)
    assert (status.tokens_last_hour, status.max_tokens_per_hour) == (35_000, 60_000)
    assert (status.tokens_last_day, status.max_tokens_per_day) == (35_000, 100_000)


async def test_an_agent_is_capped_over_its_sessions_and_no_other(capped: House) -> None:
    await turn(capped, "m1")
    await spend(capped, 55_000)
    error = await refused(capped, "m1", session="s2")
    assert error.metadata["scope"] == "per-hour"
    other = ref("s1", agent="another")
    await capped.client.assemble(other, ingest=[user("hello", id="m1")])


async def test_a_question_asked_again_is_looked_at_again(capped: House) -> None:
    """Answers that are kept must not pass the guard by."""
    await turn(capped, "m1")
    for _ in range(3):
        await capped.stub.Assemble(t.AssembleRequest(session=ref()))
    await spend(capped, 10_000)
    await turn(capped, "m2", session="s2")
    for _ in range(3):
        await capped.stub.Assemble(t.AssembleRequest(session=ref()))
    await spend(capped, 45_000, session="s2")
    with pytest.raises(Exception, match="per-hour cap"):
        await capped.stub.Assemble(t.AssembleRequest(session=ref()))


async def test_it_tells_who_watches(capped: House) -> None:
    async with capped.client.sessions.watch(name_prefixes=["budget:"]) as events:
        await events._call.initial_metadata()
        await turn(capped, "m1")
        await spend(capped, 60_000)
        await refused(capped, "m2")
        event = await anext(aiter(events))
    assert event.name == "budget:refused"
    assert event.counts["used"] == 60_000
    assert event.attributes["scope"] == "per-hour"
    counted = capped.app.metrics.snapshot()
    assert counted["contextengine.guard.refused{reason=per-hour}"] == 1


async def test_who_is_guarded_is_a_setting(tmp_path: Path) -> None:
    async with living(tmp_path) as house:
        await turn(house, "m1")
        await spend(house, 200_000_000)
        await turn(house, "m2")
        assert not (await house.client.get_status(ref())).HasField("token_guard")
        await house.restart(**{"usage.guard.engines": ["*"]})
        error = await refused(house, "m3")
        assert (error.metadata["scope"], error.metadata["cap"]) == ("per-hour", "10000000")
