"""A call that says nothing of its budget goes by what the session was last assembled for, since the
next call will be given that again."""

from __future__ import annotations

from typing import Any

import pytest

from contextengine import types as t
from tests.integration.assemble.asking import ask, quiet, say, talk, window
from tests.integration.harness import House, budget, ref, texts

pytestmark = pytest.mark.asyncio(loop_scope="module")

SMALL, LARGE = 4_000, 60_000
"""Budgets that the talk exceeds, and does not."""


async def begun(house: House, room: int) -> None:
    """A session of 12,000 tokens or so, in a model's window of 12,000, that was assembled for a
    budget; none of it is compacted."""
    await house.client.update_model(ref(), model="small", window=12_000)
    await house.client.ingest_batch(ref(), talk(20, 200))
    await quiet(house, ref())
    await ask(house, ref(), budget=budget(room))


async def due(house: House, **more: Any) -> bool:
    return (await house.client.should_compact(ref(), **more)).should_compact


@pytest.mark.parametrize(("room", "expected"), [(SMALL, True), (LARGE, False)])
async def test_a_turn_ends_in_the_budget_it_was_assembled_for(
    alone: House, room: int, expected: bool
) -> None:
    await begun(alone, room)
    assert await due(alone) is expected
    assert await due(alone, budget=budget(SMALL))
    assert not await due(alone, budget=budget(LARGE))
    turn = await alone.client.after_turn(ref(), [say("end")])
    assert turn.compaction_queued is expected


async def test_it_outlives_a_restart(alone: House) -> None:
    await begun(alone, LARGE)
    await alone.client.after_turn(ref(), [say("end")])
    await alone.restart()
    assert not await due(alone)


async def test_another_model_has_another_budget(alone: House) -> None:
    await begun(alone, LARGE)
    await alone.client.after_turn(ref(), [say("end")])
    await alone.client.update_model(ref(), model="smaller", window=8_000)
    assert await due(alone)


async def test_an_assembly_that_names_none_is_for_the_window(alone: House) -> None:
    await begun(alone, LARGE)
    await alone.client.assemble(ref())
    assert await due(alone)


async def test_a_budget_that_leaves_nothing_any_more_is_not_gone_by(alone: House) -> None:
    """It was said for a larger window: the session's own holds, and no turn is refused."""
    await alone.client.ingest_batch(ref(), talk(5))
    await ask(alone, ref(), budget=window(system_prompt_tokens=100_000))
    await alone.client.after_turn(ref(), [say("end")])
    await alone.restart(**{"budget.default_window": 50_000})
    turn = await alone.client.after_turn(ref(), [say("next")])
    assert turn.status == t.AfterTurnResponse.STATUS_COMMITTED
    assert not turn.compaction_queued


async def test_a_compaction_leaves_what_the_next_call_has_room_for(alone: House) -> None:
    """As one does that is told the budget."""
    left = []
    told: dict[str, Any] = {"budget": budget(SMALL)}
    for session, more in (("told", told), ("asked", {})):
        await alone.client.ingest_batch(ref(session), talk(20, 200))
        await quiet(alone, ref(session))
        await ask(alone, ref(session), budget=budget(SMALL))
        await alone.client.compact(ref(session), **more)
        left.append(texts((await ask(alone, ref(session), budget=budget(LARGE))).items))
    assert left[0] == left[1]
    assert len(left[0]) < 40
