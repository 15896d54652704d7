"""ShouldCompact: whether a compaction is due, and why, for every engine."""

from __future__ import annotations

import pytest

from contextengine import types as t
from contextengine.messages import user
from tests.integration.assemble.asking import assign, quiet, session, shared, store, talk
from tests.integration.harness import House, budget

__all__ = ["session", "shared"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

ENGINES = ["compressor", "dag", "layered", "legacy", "pipeline"]


async def talked(house: House, session: t.SessionRef, engine: str) -> int:
    """A session of forty turns; its tokens."""
    await assign(house, session, engine, **({"historyTurns": 100} if engine == "pipeline" else {}))
    await store(house, session, talk(40, 60))
    await quiet(house, session)
    return (await house.client.get_status(session)).view_tokens


@pytest.mark.parametrize("engine", ENGINES)
async def test_it_is_due_from_the_threshold_on(
    shared: House, session: t.SessionRef, engine: str
) -> None:
    tokens = await talked(shared, session, engine)
    ask = shared.client.should_compact
    below = await ask(session, budget=budget(tokens * 4))
    assert (below.should_compact, below.reason) == (False, "below threshold")
    assert below.tokens == tokens < below.threshold_tokens
    over = await ask(session, budget=budget(tokens * 9 // 10))
    assert (over.should_compact, over.reason) == (True, "over threshold")
    assert over.tokens >= over.threshold_tokens
    assert over.has_content
    assert not over.awaiting_usage
    measured = await ask(session, budget=budget(tokens * 2), prompt_tokens=tokens * 19 // 10)
    assert measured.tokens > tokens
    assert measured.should_compact == (measured.tokens > measured.threshold_tokens)


async def test_an_engine_that_shows_less_than_there_is_judges_by_that(
    shared: House, session: t.SessionRef
) -> None:
    await assign(shared, session, "pipeline")
    await store(shared, session, talk(40, 60))
    tokens = (await shared.client.get_status(session)).view_tokens
    said = await shared.client.should_compact(session, budget=budget(tokens * 9 // 10))
    assert (said.should_compact, said.reason) == (False, "what is shown has room")
    assert said.has_content


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_session_of_one_message_has_nothing_to_compact(
    shared: House, session: t.SessionRef, engine: str
) -> None:
    await assign(shared, session, engine)
    await store(shared, session, [user("hello", id="m1")])
    for preflight in (False, True):
        said = await shared.client.should_compact(
            session, budget=budget(5_000), preflight=preflight
        )
        assert not said.should_compact
        assert not said.has_content


async def test_the_verdict_waits_for_usage_after_a_compaction(
    shared: House, session: t.SessionRef
) -> None:
    tokens = await talked(shared, session, "compressor")
    ask, usage = shared.client.should_compact, t.Usage(input_tokens=tokens, output_tokens=1)
    await shared.client.report_usage(session, usage=usage)
    assert not (await ask(session, budget=budget(tokens))).awaiting_usage
    assert (await shared.client.compact(session, force=True, budget=budget(tokens))).compacted
    left = (await shared.client.get_status(session)).view_tokens
    waits = await ask(session, budget=budget(left + 10))
    assert (waits.should_compact, waits.reason) == (False, "awaiting usage")
    assert waits.awaiting_usage
    measured = await ask(session, budget=budget(left + 10), prompt_tokens=left + 5)
    assert measured.should_compact
    crowded = await ask(session, budget=budget(left - 100))
    assert crowded.should_compact
    await shared.client.report_usage(session, usage=usage)
    again = await ask(session, budget=budget(left + 10))
    assert again.should_compact
    assert not again.awaiting_usage
