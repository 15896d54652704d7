"""SIGKILL at every point of a compaction: after the restart the view is the one before the pass or
the one after it, never between; and what is owed is worked off."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from contextengine import AsyncClient
from contextengine_server.compaction.jobs import LEASE_MS
from tests.databases import ON_SQLITE
from tests.integration.assemble.asking import ask, ids_of, judged, settled, talk
from tests.integration.harness import Clock, budget, ref
from tests.integration.harness import house as living

from .dying import Dying

OPTIONS = {"leafChunkTokens": 1_000, "leafTargetTokens": 200, "condensedMinFanout": 3}
SIZE = budget(8_000)
MESSAGES = talk(40, 100)


@pytest.mark.parametrize("point", ["planned", "summarizing", "committing", "committed"])
@ON_SQLITE
async def test_a_kill_leaves_the_view_before_or_the_view_after(tmp_path: Path, point: str) -> None:
    dying = Dying(tmp_path / "contextengine.db", point, number=2)
    try:
        async with AsyncClient(await dying.start()) as client:
            choice = json.dumps(OPTIONS).encode()
            await client.engines.assign(scope=ref(), engine_id="dag", options_json=choice)
            turn = await client.after_turn(ref(), MESSAGES, budget=SIZE)
            assert turn.compaction_queued
            assert await dying.dead() == -9
    finally:
        dying.end()
    made = 2 if point == "committed" else 1
    clock = Clock(time.time_ns() // 1_000_000)
    async with living(tmp_path, clock=clock) as house:
        status = await house.client.get_status(ref())
        assert status.generation in ((1, 2) if point == "writing" else (made,))
        assert [job.kind for job in status.jobs] == ["compact"]
        exported = await house.export(ref())
        assert [s.info.generation for s in exported.summaries] == list(
            range(1, status.generation + 1)
        )
        assert status.summary_count == len(exported.summaries)
        reply = await ask(house, ref(), budget=budget(100_000))
        assert await judged(house, reply, ref()) == []
        shown = [item.origin.summary_id for item in reply.items if item.origin.summary_id]
        assert shown == [s.info.id for s in exported.summaries]
        behind = exported.summaries[-1].info.last_sequence
        assert [i.origin.sequence for i in reply.items[len(shown) :]] == list(range(behind + 1, 81))
        # The lease dies with its time; then the rest is done, and what was committed stays as it
        # was.
        clock.advance(2 * LEASE_MS / 1000)
        house.app.core.queue.woken.set()
        status = await settled(house, ref())
        assert status.view_tokens <= 0.9 * 8_000
        after = await house.export(ref())
        by_id = {s.info.id: s.text for s in after.summaries}
        assert all(by_id[s.info.id] == s.text for s in exported.summaries)
        assert ids_of(after.messages) == ids_of(MESSAGES)
        assert await judged(house, await ask(house, ref(), budget=SIZE), ref()) == []
