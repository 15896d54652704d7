"""Who holds the event loop is seen, by the rpc or the task that does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from contextengine_server.telemetry.loop_watch import HELD_S, LoopWatch
from contextengine_server.telemetry.metrics import Metrics

PATIENCE_S = 60
"""The machine may stand still for a while."""


@pytest.fixture
async def metrics() -> AsyncIterator[Metrics]:
    """Those of a watch over this loop."""
    metrics = Metrics()
    watch = LoopWatch(metrics)
    watch.start()
    yield metrics
    watch.stop()


def holds(metrics: Metrics, task: str) -> float:
    return metrics.snapshot().get(f"contextengine.loop.held{{task={task}}}.count", 0)


async def holding() -> None:
    """Works until the loop has been held for long, whoever else runs on the machine."""
    ends = time.thread_time() + 20 * HELD_S
    while time.thread_time() < ends:
        pass


async def holding_for(seconds: float) -> None:
    """Keeps the loop for a while."""
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        pass


async def noted(metrics: Metrics, task: str) -> None:
    """Holds the loop until the watch says who does: the thread that looks may be late itself."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds(metrics, task):
            await asyncio.create_task(holding(), name=task if "/" in task else None)
            await asyncio.sleep(0.1)


async def test_a_task_that_holds_the_loop_is_named(metrics: Metrics) -> None:
    await noted(metrics, "holding")


async def test_a_call_is_named_by_its_rpc(metrics: Metrics) -> None:
    await noted(metrics, "contextengine.v1.ContextEngine/Assemble")


async def test_a_machine_without_time_for_us_is_nobody_of_ours(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop comes late without having used the processor: others have it."""
    monkeypatch.setattr(time, "thread_time", lambda: 1.0)
    for _ in range(3):
        await asyncio.create_task(holding_for(10 * HELD_S))
        await asyncio.sleep(0.1)
    said = metrics.snapshot()
    assert said["contextengine.loop.late.count"] > 0
    assert not [
        name
        for name, value in said.items()
        if name.startswith("contextengine.loop.held") and name.endswith(".count") and value
    ]
