"""A summary that somebody else wrote because a model was down is made again, in its place, once
that one is back; within the spend cap. See docs/semantics.md#made-again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from contextengine import types as t

from ..harness import House
from .lending import PATIENCE_S, talk, written_by
from .provider import answer, error
from .services import Served, served

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOWN = error(503)
BACK_S = 3_700
"""Longer than any wait between two tries."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    remake = {"summarizer.remake": True}
    async with served(tmp_path_factory.mktemp("shared"), "first", "second", **remake) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def on(shared: Served) -> Served:
    """Every service answers well, and nothing is remembered against any: a day has passed."""
    shared.replying()
    shared.clock.advance(86_400)
    return shared


async def shown_by(house: House, session: t.SessionRef) -> list[str]:
    """Who wrote the summaries that are shown."""
    reply = await house.client.assemble(session, budget=t.Budget(message_tokens=50_000))
    return [one.summary.summarizer for one in reply.items if one.HasField("summary")]


async def remade(on: Served, session: t.SessionRef, by: str) -> None:
    """Waits until every summary that is shown is by this one, and nothing is owed any more."""
    async with asyncio.timeout(PATIENCE_S):
        while set(await shown_by(on.at, session)) != {by}:
            await asyncio.sleep(0.05)
        while (await on.at.client.get_status(session)).jobs:
            await asyncio.sleep(0.05)


async def test_it_is_made_again_once_the_model_is_back(on: Served) -> None:
    session = await talk(on.at)
    on.replying(first=DOWN, second=DOWN)
    (done,) = await written_by(on.at, await on.compacted(session))
    assert done == "extractive"
    on.replying(first=answer(), second=answer())
    on.clock.advance(BACK_S)
    await remade(on, session, "first:first-small")
    status = await on.at.client.get_status(session)
    assert status.generation == 2
    # The next request says that its beginning is another one.
    await on.at.client.compact(session, undo_to_generation=1)
    assert await shown_by(on.at, session) == ["extractive"]


async def test_a_later_model_gives_way_to_the_first(on: Served) -> None:
    session = await talk(on.at)
    on.replying(first=DOWN)
    assert await written_by(on.at, await on.compacted(session)) == ["second:second-small"]
    on.replying(second=DOWN)
    on.clock.advance(BACK_S)
    await remade(on, session, "first:first-small")
    exported = (await on.at.export(session)).summaries
    (again,) = [one.info for one in exported if one.info.remakes]
    (old,) = [one.info for one in exported if one.info.id == again.remakes]
    assert (old.wanted, again.wanted) == ("first:first-small", "")
    assert not old.retired_revision


async def test_a_spend_cap_bounds_it(on: Served) -> None:
    session = await talk(on.at)
    on.replying(first=DOWN, second=DOWN)
    await on.compacted(session)
    await on.assign(t.SessionRef(), summarizer={"spend": {"max_tokens_per_tenant_per_hour": 1}})
    try:
        on.replying()
        before = on.asked()
        done = await on.at.client.compact(session, redo=True)
        assert (done.ok, list(done.summaries)) == (False, [])
        assert on.asked() == before
        assert await shown_by(on.at, session) == ["extractive"]
    finally:
        await on.at.client.engines.assign(scope=t.SessionRef(), clear=True)
    done = await on.at.client.compact(session, redo=True)
    assert (done.ok, done.passes) == (True, 1)
    assert await shown_by(on.at, session) == ["first:first-small"]
