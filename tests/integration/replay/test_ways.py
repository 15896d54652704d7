"""The coding session, turn by turn, in each way of calling: the same context at every turn; through deltas the same list as through
full replies; across restarts and evictions the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from contextengine import types as t
from tests.integration.harness import House, ref
from tests.integration.harness import house as living

from .playing import EVERYTHING, WAYS, Player, coding, no_background, turns, with_ids

BUDGETS = {"dag": 50_000, "legacy": 200_000}


@pytest.mark.parametrize("engine", ["dag", "legacy"])
async def test_every_way_of_calling_gives_the_same_context(engine: str, tmp_path: Path) -> None:
    messages = coding().messages
    async with living(tmp_path, **{"engine.default": engine}) as house:
        no_background(house)
        players = {
            (name, delta): Player(house, f"{name}-{delta}", BUDGETS[engine], prepare(messages), delta)
            for name, (prepare, _) in WAYS.items()
            for delta in (False, True)
        }
        for first, last in turns(messages):
            lists = {}
            for (name, delta), player in players.items():
                reply = await WAYS[name][1](player, first, last)
                assert reply.outcome == t.AssembleResponse.OUTCOME_FITS, (name, delta, last)
                lists[name, delta] = [(item.content_hash, item.tokens) for item in player.held]
            expected = lists["ingest", False]
            assert all(found == expected for found in lists.values()), [
                key for key, found in lists.items() if found != expected
            ]
            # With the same ids the very bytes of the items are the same.
            whole = [item.SerializeToString(deterministic=True) for item in players["ingest", False].held]
            for key in (("ingest", True), ("separate", False), ("separate", True), ("live-ids", True)):
                assert [item.SerializeToString(deterministic=True) for item in players[key].held] == whole, (
                    key
                )
        for (name, delta), player in players.items():
            kind = "delta" if delta else "full"
            print(
                f"{engine:6} {name:9} {kind:5} sent {player.sent:>12,} received {player.received:>12,} bytes"
            )


@pytest.mark.parametrize("engine", ["dag", "legacy"])
async def test_a_restart_or_an_eviction_changes_no_byte(engine: str, tmp_path: Path) -> None:
    messages = with_ids(coding().messages)
    every = 1 if EVERYTHING else 30
    async with living(tmp_path, **{"engine.default": engine}) as house:
        no_background(house)
        for number, (first, last) in enumerate(turns(messages)):
            request = t.AssembleRequest(session=ref("s"), budget=t.Budget(message_tokens=BUDGETS[engine]))
            step = t.AssembleRequest()
            step.CopyFrom(request)
            step.ingest.extend(messages[first:last])
            stored = await house.stub.Assemble(step)
            warm = await house.stub.Assemble(request)
            assert warm.items == stored.items
            await _another_life(house, restart=number % every == every - 1)
            cold = await house.stub.Assemble(request)
            assert cold.SerializeToString(deterministic=True) == warm.SerializeToString(deterministic=True)


async def _another_life(house: House, *, restart: bool) -> None:
    if restart:
        await house.restart()
        no_background(house)
    else:
        house.forget()
