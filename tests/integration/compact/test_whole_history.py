"""A whole history compacted in one call, by the note that counts: what it reads is in proportion to
the history, and what it holds is not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from contextengine import types as t
from contextengine_server.compaction import request
from contextengine_server.session.sessions import Sessions
from contextengine_server.summarize import SummarizerChain
from tests.integration.assemble.asking import (
    ask,
    assign,
    ids_of,
    judged,
    quiet,
    scope_of,
    store,
    talk,
)
from tests.integration.harness import House, budget, ref

pytestmark = pytest.mark.asyncio(loop_scope="module")
SIZE = budget(2_000)


class Reads:
    """Counts the messages that the store is asked for, but by the search index, which reads when it
    likes."""

    def __init__(self, house: House) -> None:
        self.rows = 0
        self._read: Callable[..., Any] = house.app.store.messages
        house.app.store.messages = self.messages  # type: ignore[method-assign]

    async def messages(self, *arguments: Any, **more: Any) -> Any:
        found = await self._read(*arguments, **more)
        task = asyncio.current_task()
        if task is None or task.get_name() != "search-index":
            self.rows += len(found)
        return found


async def compacted(
    house: House, session: t.SessionRef, turns: int
) -> tuple[t.CompactResponse, int]:
    """Compacts a cold session of so many turns; what came of it, and how many messages were read
    for it."""
    await assign(house, session, "dag", leafChunkTokens=1_000)
    await store(house, session, talk(turns, 100))
    await quiet(house, session)
    await house.restart()
    core = house.app.core
    core.summaries.summarizer = SummarizerChain([], core.encodings.default.count)
    reads = Reads(house)
    done = await house.client.compact(session, force=True, budget=SIZE)
    return done, reads.rows


@pytest.fixture
def held_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a raw history that is longer than what a pass has in memory."""
    monkeypatch.setattr(request, "MOST_HELD", 0)


@pytest.mark.usefixtures("held_in_part")
async def test_what_is_read_and_held(shared: House, session: t.SessionRef) -> None:
    short, once = await compacted(shared, ref("short"), 150)
    long, twice = await compacted(shared, session, 300)
    assert long.passes > 1.9 * short.passes > 100
    # Each message once for its leaf, and the window anew now and then.
    assert twice < 3 * 600
    assert twice < 2.5 * once
    warm = shared.app.core.cache.find(await scope_of(shared, session))
    assert warm is not None
    assert len(warm.view.atoms) < 50
    assert len(warm.view.anchors) < 20
    # What is shown is a few summaries of great depth; what each stands for is a look-up away.
    assert len(warm.view.summaries) < 12 < len(warm.live_summaries)
    reply = await ask(shared, session, budget=SIZE)
    assert await judged(shared, reply, session) == []
    assert ids_of(await shared.rows(session)) == ids_of(talk(300))


@pytest.mark.usefixtures("held_in_part")
async def test_a_budget_that_grows_by_little_reads_nothing_again(
    shared: House, session: t.SessionRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    await compacted(shared, session, 100)
    read: list[Any] = []
    reload = Sessions.reload

    async def counted(*arguments: Any) -> None:
        read.append(arguments)
        await reload(*arguments)

    monkeypatch.setattr(Sessions, "reload", counted)
    await ask(shared, session, budget=budget(8_000))
    assert read
    read.clear()
    for more in range(1, 60):
        await ask(shared, session, budget=budget(8_000 + more))
    assert read == []
