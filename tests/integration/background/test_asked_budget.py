"""A turn's end that says nothing of the next call's budget does not compact what that call has room
for."""

from __future__ import annotations

from typing import Any

import pytest

from contextengine import types as t
from tests.integration.assemble.asking import ask, quiet, say, talk
from tests.integration.harness import House, budget, ref

pytestmark = pytest.mark.asyncio(loop_scope="module")

SMALL, LARGE = 4_000, 60_000
"""Budgets that the talk exceeds, and does not."""


async def begun(house: House, room: int, window: int = 12_000) -> None:
    """A session of 12,000 tokens or so, in a model's window, that was assembled for a budget; none
    of it is compacted."""
    await house.client.update_model(ref(), model="small", window=window)
    await house.client.ingest_batch(ref(), talk(20, 200))
    await quiet(house, ref())
    await ask(house, ref(), budget=budget(room))


async def queued(house: House, **more: Any) -> bool:
    """Whether a turn's end asks for a compaction."""
    turn = await house.client.after_turn(ref(), [say("end")], **more)
    return bool(turn.compaction_queued)


async def test_a_turn_ends_in_the_larger_budget_that_it_was_assembled_for(alone: House) -> None:
    await begun(alone, LARGE)
    assert not await queued(alone)


@pytest.mark.parametrize("said", [budget(SMALL), t.Budget(window=t.WindowBudget())])
async def test_a_budget_that_is_said_counts(alone: House, said: t.Budget) -> None:
    """An empty window is the session's."""
    await begun(alone, LARGE)
    assert await queued(alone, budget=said)


async def test_a_smaller_one_is_no_reason(alone: House) -> None:
    """It may have been a side call's."""
    await begun(alone, SMALL, window=200_000)
    assert not await queued(alone)


async def test_what_the_provider_was_seen_to_serve_is_less(alone: House) -> None:
    await begun(alone, LARGE)
    overflow = t.ReportUsageRequest.Overflow(limit_tokens=10_000)
    await alone.client.report_usage(ref(), overflow=overflow)
    assert await queued(alone)
