"""Harnesses that come and go, dawdle, answer twice, answer for others and fail: every compaction
ends, no result counts twice."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import grpc
import pytest

from contextengine_proto.v1 import runtime_pb2 as pb
from contextengine_server.config.settings import Settings
from contextengine_server.runtime import wanted

from ..harness import Clock, House, house
from .lending import PATIENCE_S, attached, compacting, talk, written_by
from .provider import GOOD

SESSIONS, HARNESSES = 12, 4


class Unruly:
    """What one harness does with what it hears, by chance."""

    heard = 0
    """How much all of them heard."""

    def __init__(self, at: House, dice: random.Random, seen: list[pb.AttachResponse.Job]) -> None:
        self.at, self.dice, self.seen = at, dice, seen
        self.accepted: Counter[str] = Counter()

    async def live(self) -> None:
        """Attaches again and again."""
        while True:
            try:
                async with attached(
                    self.at, max_concurrent_jobs=self.dice.choice([0, 1, 3])
                ) as harness:
                    while self.dice.random() > 0.1:
                        await self.hear(harness, await harness.hears())
            except (grpc.RpcError, AssertionError, TimeoutError):
                continue

    async def hear(self, harness, said: pb.AttachResponse) -> None:
        Unruly.heard += 1
        kind = said.WhichOneof("kind")
        if kind == "receipt" and said.receipt.accepted:
            self.accepted[said.receipt.job_id] += 1
        if kind != "job":
            return
        self.seen.append(said.job)
        job = said.job
        act = self.dice.random()
        if act < 0.35:
            await harness.answer(job, GOOD)
        elif act < 0.5:
            await harness.answer(job, GOOD)
            await harness.answer(job, "Another text, which must not count.")
        elif act < 0.65:
            await harness.answer(self.dice.choice(self.seen), GOOD)
        elif act < 0.75:
            await harness.answer(job, "", error="busy", retryable=True)
        elif act < 0.8:
            await harness.answer(job, "", error="broken")
        elif act < 0.9:
            await harness.say(keep_lease={"job_id": job.job_id, "lease_id": job.lease_id})
        # Else it says nothing, and its lease runs out.


@pytest.mark.parametrize("seed", [1, 2])
async def test_every_compaction_ends_and_no_result_counts_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(wanted, "POLL_S", 0.02)
    clock = Clock()
    seen: list[pb.AttachResponse.Job] = []
    settings = {
        "engine.dag.freshTailTurns": 1,
        "engine.dag.summarizerBreaker.failureThreshold": 1_000,
    }
    async with house(tmp_path, clock=clock, **settings) as at:
        harnesses = [Unruly(at, random.Random(seed * 100 + n), seen) for n in range(HARNESSES)]
        lives = [asyncio.create_task(harness.live()) for harness in harnesses]

        async def passing() -> None:
            """Time goes on while nobody says a word: who only waits for a slow machine loses no
            lease."""
            while True:
                heard = Unruly.heard
                await asyncio.sleep(0.05)
                if heard == Unruly.heard:
                    clock.advance(20)

        lives.append(asyncio.create_task(passing()))
        try:
            sessions = [await talk(at) for _ in range(SESSIONS)]

            async def compacted(session) -> None:
                async with compacting(at, session) as done:
                    pass
                assert done.result().summaries

            async with asyncio.timeout(120):
                await asyncio.gather(*map(compacted, sessions))
        finally:
            for life in lives:
                life.cancel()
            await asyncio.gather(*lives, return_exceptions=True)
        wrote = Counter([(await written_by(at, session))[0] for session in sessions])
        texts = {(await at.export(session)).summaries[0].text for session in sessions}
        # A summary that another stood in for is made again in the background, whose job ends too.
        async with asyncio.timeout(PATIENCE_S):
            while await at.app.store.model_leases.open_count("default"):
                await asyncio.sleep(0.05)
                clock.advance(20)
    assert set(wrote) <= {"runtime", "extractive"}
    assert wrote["runtime"] > 0
    assert "Another text, which must not count." not in texts
    results = sum((harness.accepted for harness in harnesses), Counter())
    # Failures are receipts too: a job may have several, each under a lease of its own.
    assert max(results.values()) <= Settings().summarizer.runtime.attempts
