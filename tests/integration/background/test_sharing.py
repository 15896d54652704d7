"""Sessions share the background: none waits for another's slow summary, none keeps a worker."""

from __future__ import annotations

import asyncio
from itertools import groupby
from typing import Any

import pytest

from contextengine_server.compaction.jobs import PASSES
from tests.integration.assemble.asking import (
    ask,
    assign,
    held_back,
    ids_of,
    say,
    settled,
    store,
)
from tests.integration.compact.summarizers import Counting, Gated
from tests.integration.harness import House, budget, ref

from .sessions import long

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_another_sessions_work_is_not_held_up(alone: House) -> None:
    """One slow summary holds back its own session, and no one's Assemble, Ingest or Compact of
    another."""
    tokens = await long(alone, ref("slow"))
    await long(alone, ref("other"))
    async with held_back(alone, ref("slow")):
        waiting = asyncio.ensure_future(
            alone.client.compact(ref("slow"), force=True, budget=budget(tokens // 2))
        )
        assert (
            await alone.client.compact(ref("other"), force=True, budget=budget(tokens // 2))
        ).summaries
        await store(alone, ref("slow"), [say("u9")])
        assert ids_of((await ask(alone, ref("slow"), budget=budget(100_000))).items)[-1] == "u9"
        assert not waiting.done()
    assert (await waiting).summaries


async def test_a_long_job_lets_others_have_their_turn(alone: House) -> None:
    """One worker: after its passes a session that owes more stands behind the others."""
    background = alone.app.background
    await background.stop()
    background.workers = 1
    small: dict[str, Any] = {
        "leafChunkTokens": 1_000,
        "leafTargetTokens": 200,
        "condensedMinFanout": 20,
    }
    for name in ("s1", "s2"):
        await assign(alone, ref(name), **small)
        await long(alone, ref(name), turns=40)
        await ask(alone, ref(name), budget=budget(4_000))
    order = []

    class Noting(Counting):
        async def summarize(self, request):
            order.append(request.session)
            return await super().summarize(request)

    Noting(alone)
    background.start()
    for name in ("s1", "s2"):
        await settled(alone, ref(name))
    turns = [name for name, _ in groupby(order)]
    assert turns[:4] == ["s1", "s2", "s1", "s2"]
    assert order[: PASSES + 1] == ["s1"] * PASSES + ["s2"]


async def test_sessions_do_not_wait_for_each_others_summaries(alone: House) -> None:
    gated = Gated(alone)
    for name in ("s1", "s2", "s3"):
        tokens = await long(alone, ref(name))
        await ask(alone, ref(name), budget=budget(tokens))
    while len(alone.app.background.running) < 3:
        await asyncio.sleep(0.02)
    gated.gate.set()
    for name in ("s1", "s2", "s3"):
        assert (await settled(alone, ref(name))).generation == 1
