"""What is suggested of the provider's cache: how long it keeps a prefix, and where breakpoints
stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.messages import assistant, system, user
from tests.integration.harness import Clock, House, ref
from tests.integration.harness import house as living
from tests.integration.projection.asking import judged, options

NONE, SHORT, LONG = (
    t.CacheRetention.CACHE_RETENTION_NONE,
    t.CacheRetention.CACHE_RETENTION_SHORT,
    t.CacheRetention.CACHE_RETENTION_LONG,
)
UNSAID = t.CacheRetention.CACHE_RETENTION_UNSPECIFIED
CLAUDE = {"model": "claude-sonnet-4-5"}


async def kept(house: House, **more: Any) -> int:
    reply = await house.client.assemble(ref(), **{**CLAUDE, **more})
    return reply.cache_retention


async def turns(house: House, clock: Clock, first: int, count: int, read: int = 5_000) -> None:
    for number in range(first, first + count):
        await house.client.ingest(ref(), user(f"question {number}"))
        await house.client.report_usage(
            ref(), usage=t.Usage(input_tokens=5, cache_read_tokens=read)
        )
        clock.advance(60)


async def test_a_new_session_is_short_and_one_that_goes_on_is_long(
    clocked: House, clock: Clock
) -> None:
    assert await kept(clocked) == SHORT
    await turns(clocked, clock, 0, 2)
    assert await kept(clocked) == SHORT
    await turns(clocked, clock, 2, 1)
    assert await kept(clocked) == LONG
    await clocked.restart()
    assert await kept(clocked) == LONG, "it is stored"


async def test_without_reads_it_stays_short(clocked: House, clock: Clock) -> None:
    await turns(clocked, clock, 0, 9, read=0)
    assert await kept(clocked) == SHORT


async def test_an_idle_session_begins_anew(clocked: House, clock: Clock) -> None:
    await turns(clocked, clock, 0, 3)
    clock.advance(60 * 60 - 60)
    await turns(clocked, clock, 3, 1)
    assert await kept(clocked) == LONG, "an hour to the second is kept"
    clock.advance(60 * 60 - 60 + 0.001)
    await turns(clocked, clock, 4, 1)
    assert await kept(clocked) == SHORT
    await turns(clocked, clock, 5, 2)
    assert await kept(clocked) == LONG


async def test_the_message_itself_says_that_the_cache_is_gone(clocked: House, clock: Clock) -> None:
    await turns(clocked, clock, 0, 3)
    clock.advance(2 * 60 * 60)
    late = user("back again")
    late.timestamp.FromMilliseconds(clock.ms)
    assert await kept(clocked, ingest=[late]) == SHORT


async def test_what_the_host_asks_or_sees_counts(clocked: House, clock: Clock) -> None:
    for asked in (NONE, SHORT, LONG):
        assert await kept(clocked, cache_retention=asked) == asked
    await turns(clocked, clock, 0, 3)
    assert await kept(clocked, prompt_cache=t.PromptCache(broke=True)) == SHORT
    assert await kept(clocked, prompt_cache=t.PromptCache(broke=False)) == LONG


async def test_providers_that_take_none_are_told_nothing(clocked: House, clock: Clock) -> None:
    await turns(clocked, clock, 0, 3)
    for other in ({"model": "gpt-5"}, {"model": "some-model"}, {"model": ""}):
        reply = await clocked.client.assemble(ref(), **other)  # type: ignore[arg-type]
        assert (reply.cache_retention, list(reply.cache_breakpoints)) == (UNSAID, [])
    asked = await clocked.client.assemble(ref(), cache_retention=LONG)
    assert asked.cache_retention == LONG
    with pytest.raises(ContextEngineError) as caught:
        await clocked.client.assemble(ref(), cache_retention=9)  # type: ignore[arg-type]
    assert caught.value.reason == "INVALID_FIELD"


async def test_adaptive_is_a_setting(tmp_path: Path) -> None:
    adaptive = "usage.cache_retention.adaptive"
    async with living(tmp_path, **{adaptive: False}) as house:
        assert await kept(house) == LONG
        await house.restart(**{"usage.cache_retention.fixed": "none"})
        reply = await house.client.assemble(ref(), ingest=[user("words " * 3_000)], model="claude")
        assert (reply.cache_retention, list(reply.cache_breakpoints)) == (NONE, [])


async def test_breakpoints_stand_where_the_next_request_begins_as_well(house: House) -> None:
    long = "words of it " * 500
    await house.client.ingest_batch(
        ref(),
        [
            system(f"the policy {long}"),
            user(f"q1 {long}"),
            assistant(f"a1 {long}"),
            user("q2"),
            assistant("step"),
        ],
    )
    reply = await house.client.assemble(ref(), **CLAUDE)  # type: ignore[arg-type]
    assert [item.message.role for item in reply.items][:2] == [t.Role.ROLE_SYSTEM, t.Role.ROLE_USER]
    # Behind the policy, behind what the turn before left, and at the end.
    assert list(reply.cache_breakpoints) == [0, 2, 4]
    more = await house.client.assemble(ref(), ingest=[user("q3 " + long)], **CLAUDE)  # type: ignore[arg-type]
    assert list(more.cache_breakpoints) == [0, 4, 5]
    assert list(reply.items) == list(more.items)[:5], "each stands on what the next begins with"


async def test_summaries_are_an_end_of_their_own(house: House) -> None:
    long = "words of it " * 100
    for number in range(60):
        talk = [user(f"q{number} {long}"), assistant(f"a{number} {long}")]
        await house.client.ingest_batch(ref(), talk)
    budget = t.Budget(message_tokens=12_000)
    assert (await house.client.compact(ref(), force=True, budget=budget)).compacted
    reply = await house.client.assemble(ref(), budget=budget, **CLAUDE)  # type: ignore[arg-type]
    shown = [item.HasField("summary") for item in reply.items]
    summaries = sum(shown)
    assert summaries
    assert all(shown[:summaries])
    last = len(shown) - 1
    wanted = [summaries - 1, last - 2, last]
    if sum(item.tokens for item in reply.items[:summaries]) < 1_024:
        wanted = wanted[1:]
    assert list(reply.cache_breakpoints) == wanted


async def test_what_is_too_short_for_a_cache_has_no_breakpoint(house: House) -> None:
    reply = await house.client.assemble(ref(), ingest=[user("hello")], **CLAUDE)  # type: ignore[arg-type]
    assert list(reply.cache_breakpoints) == []
    # The system prompt before it counts.
    window = t.WindowBudget(window=100_000, system_prompt_tokens=2_000)
    reply = await house.client.assemble(ref(), budget=t.Budget(window=window), **CLAUDE)  # type: ignore[arg-type]
    assert list(reply.cache_breakpoints) == [0]


@pytest.mark.parametrize(
    ("model", "least"),
    [("claude-sonnet-4-5", 1_024), ("claude-3-5-haiku", 2_048), ("claude-opus-4-5", 4_096)],
)
async def test_how_short_is_too_short_depends_on_the_model(
    house: House, model: str, least: int
) -> None:
    """In tokens of the model's own, the system prompt included."""
    await house.client.ingest(ref(), user("hi"))
    for outside, wanted in ((least - 50, []), (least, [0])):
        window = t.WindowBudget(window=100_000, system_prompt_tokens=outside)
        reply = await house.client.assemble(ref(), budget=t.Budget(window=window), model=model)
        assert list(reply.cache_breakpoints) == wanted


async def test_the_projection_for_anthropic_follows(clocked: House, clock: Clock) -> None:
    """What stays is kept for an hour once the session is proved, what moves on with every request
    for five minutes; where no caching is wanted nothing is marked."""
    await clocked.client.ingest(ref(), system("the policy"))
    await turns(clocked, clock, 0, 3)
    asked: dict[str, Any] = {**CLAUDE, "projection": options("anthropic")}
    long = (await clocked.client.assemble(ref(), **asked)).projection
    assert not judged(long, "anthropic")
    assert b'"ttl":"1h"' in long.system_json
    assert b"cache_control" in long.messages_json
    assert b"ttl" not in long.messages_json
    asked["cache_retention"] = SHORT
    short = (await clocked.client.assemble(ref(), **asked)).projection
    assert b"cache_control" in short.system_json
    assert b"ttl" not in short.system_json
    assert short.messages_json == long.messages_json
    asked["cache_retention"] = NONE
    none = (await clocked.client.assemble(ref(), **asked)).projection
    assert b"cache_control" not in none.system_json + none.messages_json
