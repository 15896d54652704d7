"""What an operator chose for a tenant, an agent or a session says who is asked for its summaries,
and how much."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from contextengine import types as t
from contextengine.errors import InvalidField

from ..harness import ALICE, BOB, TOKENS, ref
from .lending import talk, written_by
from .provider import answer, error
from .services import Served, served

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOWN = error(503)
ALONE = {"summarizer.remake": False}
"""Nobody is asked but for what a test asks for."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    async with served(
        tmp_path_factory.mktemp("shared"), "first", "second", "third", **ALONE
    ) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def on(shared: Served) -> Served:
    """Every service answers well, and nothing is remembered against any: a day has passed."""
    shared.replying()
    shared.clock.advance(86_400)
    return shared


async def test_a_sessions_own_model_is_asked(on: Served) -> None:
    own, other = await talk(on.at), await talk(on.at)
    await on.assign(own, compactionModel="second:large")
    assert await written_by(on.at, await on.compacted(own)) == ["second:large"]
    (asked,) = on.services["second"].requests
    assert asked.body["model"] == "large"
    assert await written_by(on.at, await on.compacted(other)) == ["first:first-small"]
    assert on.asked() == {"first": 1, "second": 1}


async def test_an_agents_choice_is_its_sessions(on: Served) -> None:
    session = await talk(on.at)
    await on.assign(ref(""), compactionModel="third")
    try:
        assert await written_by(on.at, await on.compacted(session)) == ["third:third-small"]
        own = await talk(on.at)
        await on.assign(own, compactionModel="second")
        assert await written_by(on.at, await on.compacted(own)) == ["second:second-small"]
    finally:
        await on.at.client.engines.assign(scope=ref(""), clear=True)


@pytest.mark.parametrize(
    ("option", "options"),
    [
        ("compactionModel", {"compactionModel": "nobody:x"}),
        (
            "compaction.summarizerFallbackProviders",
            {"compaction": {"summarizerFallbackProviders": ["first", "nobody"]}},
        ),
    ],
)
async def test_a_model_of_no_endpoint_is_refused_and_nothing_changes(
    on: Served, option: str, options: dict[str, Any]
) -> None:
    session = await talk(on.at)
    await on.assign(session, compactionModel="second")
    for target in (session, ref("")):
        with pytest.raises(InvalidField) as caught:
            await on.assign(target, **options)
        assert [violation.field for violation in caught.value.violations] == ["options_json"]
        assert f"{option}: names 'nobody'" in str(caught.value)
        for name in on.services:
            assert name in str(caught.value)
    assert await written_by(on.at, await on.compacted(session)) == ["second:second-small"]
    assert await written_by(on.at, await on.compacted(await talk(on.at))) == ["first:first-small"]


async def test_a_sessions_own_fallbacks_are_asked_in_their_order(on: Served) -> None:
    session = await talk(on.at)
    await on.assign(session, compaction={"summarizerFallbackProviders": ["third:big", "second"]})
    on.replying(first=DOWN, third=DOWN)
    assert await written_by(on.at, await on.compacted(session)) == ["second:second-small"]
    assert on.asked() == {"first": 1, "second": 1, "third": 1}
    assert on.services["third"].requests[0].body["model"] == "big"
    # One of them gave a summary: nothing failed.
    assert (await on.guards(session)).breaker_failures == 0


async def test_a_sessions_own_caps_count_what_its_tenant_spent(on: Served) -> None:
    free, capped = await talk(on.at), await talk(on.at)
    await on.compacted(free)
    spent = (await on.guards(free)).tokens_last_hour
    assert spent == 720
    await on.assign(
        capped, summarizerSpend={"maxTokensPerTenantPerHour": 800, "maxTokensPerTenantPerDay": 0}
    )
    assert await written_by(on.at, await on.compacted(capped)) == ["extractive"]
    assert on.asked() == {"first": 1}
    shown = await on.guards(capped)
    assert (shown.tokens_last_hour, shown.max_tokens_per_hour) == (spent, 800)
    assert (shown.tokens_last_day, shown.max_tokens_per_day) == (spent, 0)
    assert (await on.guards(free)).max_tokens_per_hour == 500_000


async def test_comis_103_an_hour_and_a_millisecond_later_there_is_room_again(on: Served) -> None:
    """Given usage above the cap, the model is not asked within the hour, and is after it."""
    first, second, third = [await talk(on.at) for _ in range(3)]
    cap = {"maxTokensPerTenantPerHour": 3_900, "maxTokensPerTenantPerDay": 0}
    for session in (first, second, third):
        await on.assign(session, summarizerSpend=cap)
    assert await written_by(on.at, await on.compacted(first)) == ["first:first-small"]
    assert (await on.guards(first)).tokens_last_hour == 720
    on.clock.advance(3_599)
    assert await written_by(on.at, await on.compacted(second)) == ["extractive"]
    on.clock.advance(1.001)
    assert await written_by(on.at, await on.compacted(third)) == ["first:first-small"]


async def test_a_sessions_own_breaker(on: Served) -> None:
    on.replying(first=DOWN, second=DOWN, third=DOWN)
    hasty = await talk(on.at)
    await on.assign(hasty, summarizerBreaker={"failureThreshold": 1, "resetTimeoutMs": 5_000})
    await on.compacted(hasty)
    assert on.asked() == {"first": 1, "second": 1, "third": 1}
    shown = await on.guards(hasty)
    assert (shown.breaker_state, shown.breaker_failures) == ("open", 1)
    assert shown.breaker_retry_time.ToMilliseconds() == on.clock() + 5_000
    on.replying()
    assert await written_by(on.at, await on.compacted(await talk(on.at))) == ["extractive"]
    assert on.asked() == {}
    on.clock.advance(60)
    assert (await on.guards(hasty)).breaker_state == "half_open"
    assert await written_by(on.at, await on.compacted(await talk(on.at))) == ["first:first-small"]
    shown = await on.guards(hasty)
    assert (shown.breaker_state, shown.breaker_failures) == ("closed", 0)
    assert not shown.HasField("breaker_retry_time")


async def test_an_engine_without_such_options_asks_as_configured(on: Served) -> None:
    session = await talk(on.at)
    await on.at.client.engines.assign(scope=session, engine_id="legacy")
    on.replying(first=DOWN)
    assert await written_by(on.at, await on.compacted(session)) == ["second:second-small"]
    shown = await on.guards(session)
    assert (shown.max_tokens_per_hour, shown.max_tokens_per_day) == (500_000, 5_000_000)


@pytest.mark.parametrize("engine", ["dag", "legacy"])
async def test_a_tenants_cap_holds_whichever_engine_serves(on: Served, engine: str) -> None:
    """And counts what sessions of other engines spent."""
    first, second = await talk(on.at), await talk(on.at)
    await on.at.client.engines.assign(scope=second, engine_id=engine)
    assert await written_by(on.at, await on.compacted(first)) == ["first:first-small"]
    await on.assign(t.SessionRef(), summarizer={"spend": {"max_tokens_per_tenant_per_hour": 800}})
    try:
        assert await written_by(on.at, await on.compacted(second)) == ["extractive"]
        assert on.asked() == {"first": 1}
        shown = await on.guards(second)
        assert (shown.tokens_last_hour, shown.max_tokens_per_hour) == (720, 800)
    finally:
        await on.at.client.engines.assign(clear=True)


async def test_guards_outlive_the_server(on: Served) -> None:
    on.replying(first=DOWN, second=DOWN, third=answer(usage={"total_tokens": 5_000}))
    session = await talk(on.at)
    await on.compacted(session)
    on.replying(first=DOWN, second=DOWN, third=DOWN)
    for _ in range(5):
        await on.compacted(await talk(on.at))
    before = await on.guards(session)
    assert (before.breaker_state, before.breaker_failures, before.tokens_last_hour) == (
        "open",
        5,
        5_000,
    )
    await on.at.restart()
    assert await on.guards(session) == before
    on.replying()
    assert await written_by(on.at, await on.compacted(await talk(on.at))) == ["extractive"]
    assert on.asked() == {}
    on.clock.advance(60)
    assert await written_by(on.at, await on.compacted(await talk(on.at))) == ["first:first-small"]
    on.clock.advance(3_600)
    after = await on.guards(session)
    assert (after.breaker_state, after.tokens_last_hour, after.tokens_last_day) == (
        "closed",
        0,
        5_720,
    )


async def test_one_tenants_guards_are_no_others(tmp_path_factory: pytest.TempPathFactory) -> None:
    settings: dict[str, Any] = {
        "auth.tokens": TOKENS,
        "engine.dag.summarizerSpend.maxTokensPerTenantPerHour": 6_000,
        "engine.dag.summarizerBreaker.failureThreshold": 1,
    }
    async with served(tmp_path_factory.mktemp("tenants"), "first", token=ALICE, **settings) as on:
        alice, bob = on.at.client, on.at.client_of(BOB)
        hers, his = await talk(on.at, alice), await talk(on.at, bob)
        on.replying(first=answer(usage={"total_tokens": 5_000}))
        await on.compacted(hers, alice)
        on.replying()
        over = await on.compacted(await talk(on.at, alice), alice)
        assert await written_by(on.at, over, alice) == ["extractive"]
        assert (await on.guards(his, bob)).tokens_last_hour == 0
        assert await written_by(on.at, await on.compacted(his, bob), bob) == ["first:first-small"]
        on.replying(first=DOWN)
        await on.compacted(await talk(on.at, bob), bob)
        assert (await on.guards(his, bob)).breaker_state == "open"
        assert (await on.guards(hers, alice)).breaker_state == "closed"
