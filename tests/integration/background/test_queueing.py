"""What has been tried in vain is not queued again and again: a session that stays above its
threshold writes no debt at each step."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.integration.assemble.asking import ask, owed, settled, talk
from tests.integration.compact.summarizers import Wordy
from tests.integration.harness import House, budget, ref
from tests.integration.harness import house as living

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def alone(tmp_path: Path) -> AsyncIterator[House]:
    """A service of the test's own."""
    async with living(tmp_path) as house:
        yield house


async def test_what_was_tried_in_vain_waits_for_more_history(alone: House) -> None:
    wordy = Wordy(alone)
    assert (
        await alone.client.after_turn(ref(), talk(20, 100), budget=budget(6_000))
    ).compaction_queued
    await settled(alone, ref())
    tried = len(wordy.asked)
    assert tried
    for turn in range(3):
        small = await alone.client.after_turn(ref(), talk(1, 3, f"s{turn}-"), budget=budget(6_000))
        assert not small.compaction_queued
        await ask(alone, ref(), budget=budget(6_000))
        assert await owed(alone, ref()) == 0
    assert len(wordy.asked) == tried
    assert (
        await alone.client.after_turn(ref(), talk(3, 100, "n"), budget=budget(6_000))
    ).compaction_queued


async def test_a_smaller_budget_is_another_matter(alone: House) -> None:
    Wordy(alone)
    assert (
        await alone.client.after_turn(ref(), talk(20, 100), budget=budget(6_000))
    ).compaction_queued
    await settled(alone, ref())
    assert not (await alone.client.after_turn(ref(), [], budget=budget(6_000))).compaction_queued
    assert (await alone.client.after_turn(ref(), [], budget=budget(5_000))).compaction_queued


async def test_another_life_asks_once_more(alone: House) -> None:
    Wordy(alone)
    assert (
        await alone.client.after_turn(ref(), talk(20, 100), budget=budget(6_000))
    ).compaction_queued
    await settled(alone, ref())
    await alone.client.dispose_session(ref())
    assert (
        await alone.client.after_turn(ref(), talk(1, 3, "s"), budget=budget(6_000))
    ).compaction_queued
