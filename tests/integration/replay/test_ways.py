"""The coding session, some turns at a time, in each way of calling: the same context each time;
through deltas the same list as through full replies; across restarts and evictions the same
bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from contextengine import types as t
from tests.integration.harness import House, ref
from tests.integration.harness import house as living

from .playing import EVERYTHING, WAYS, Player, coding, no_background, strides, with_ids

BUDGETS = {"dag": 50_000, "legacy": 200_000}


@pytest.mark.parametrize("engine", ["dag", "legacy"])
async def test_every_way_of_calling_gives_the_same_context(engine: str, tmp_path: Path) -> None:
    messages = coding().messages
    async with living(tmp_path, **{"engine.default": engine}) as house:
        no_background(house)
        players = {
            (name, delta): Player(
                house, f"{name}-{delta}", BUDGETS[engine], prepare(messages), delta
            )
            for name, (prepare, _) in WAYS.items()
            for delta in (False, True)
        }
        played = dict.fromkeys(players, 0)
        for number, (_, last) in enumerate(strides(messages)):
            # A list of nine hundred messages takes its time to send: outside the soak it is sent
            # half as often.
            often = last == len(messages) or number % (1 if EVERYTHING else 2) == 0
            asked = [key for key in players if often or not key[0].startswith("live")]
            whole = ""
            for key in asked:
                reply = await WAYS[key[0]][1](players[key], played[key], last)
                played[key] = last
                assert reply.outcome == t.AssembleResponse.OUTCOME_FITS, (key, last)
                whole = whole or reply.context_hash.hex()
                # It chains the hashes of all the items, and so says of a delta what list it makes.
                assert reply.context_hash.hex() == whole, (key, last)
            if number % 4 == 0 or last == len(messages) or EVERYTHING:
                _compare({key: players[key].held for key in asked})
        for (name, delta), player in players.items():
            kind = "delta" if delta else "full"
            print(
                f"{engine:6} {name:9} {kind:5} sent {player.sent:>12,} received"
                f" {player.received:>12,} bytes"
            )


def _compare(held: dict[tuple[str, bool], list[t.Item]]) -> None:
    """The same items; and with the same ids the very same bytes."""
    lists = {
        key: [(item.content_hash, item.tokens) for item in items] for key, items in held.items()
    }
    assert all(found == lists["ingest", False] for found in lists.values()), held.keys()
    with_the_same_ids = {
        key: [item.SerializeToString(deterministic=True) for item in items]
        for key, items in held.items()
        if key[0] != "live"
    }
    for key, found in with_the_same_ids.items():
        assert found == with_the_same_ids["ingest", False], key


@pytest.mark.parametrize("engine", ["dag", "legacy"])
async def test_a_restart_or_an_eviction_changes_no_byte(engine: str, tmp_path: Path) -> None:
    messages = with_ids(coding().messages)
    every = 1 if EVERYTHING else 10
    async with living(tmp_path, **{"engine.default": engine}) as house:
        no_background(house)
        for number, (first, last) in enumerate(strides(messages)):
            request = t.AssembleRequest(
                session=ref("s"), budget=t.Budget(message_tokens=BUDGETS[engine])
            )
            step = t.AssembleRequest()
            step.CopyFrom(request)
            step.ingest.extend(messages[first:last])
            stored = await house.stub.Assemble(step)
            warm = await house.stub.Assemble(request)
            assert warm.items == stored.items
            await _another_life(house, restart=number % every == every - 1)
            cold = await house.stub.Assemble(request)
            assert cold.SerializeToString(deterministic=True) == warm.SerializeToString(
                deterministic=True
            )


async def _another_life(house: House, *, restart: bool) -> None:
    if restart:
        await house.restart()
        no_background(house)
    else:
        house.forget()
