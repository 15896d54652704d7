"""Law 9 over lives in which more happens: whoever keeps everything in memory and whoever lets it go
hear the same bytes and leave the same rows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings

from tests.properties.fuller_lives import FullerPlayer, fuller_lives
from tests.properties.lives import ENGINES, Event
from tests.properties.test_warm_and_cold import OPTIONS, Left, forgotten, left, same
from tests.unit.commands.house import Rows, Server


async def played(engine: str, life: Sequence[Event], forgets: frozenset[int] = frozenset()) -> Left:
    """Plays a life to a server of its own."""
    server = Server(Rows(), **{"engine.default": engine, **OPTIONS})
    await server.open()
    try:
        player = FullerPlayer(server, forgets)
        return await left(player, await player.play(life))
    finally:
        await server.close()


@pytest.mark.parametrize("engine", sorted(ENGINES))
@settings(max_examples=12)
@given(life=fuller_lives, forgets=forgotten)
def test_memory_shows_in_nothing(engine: str, life: list[Event], forgets: frozenset[int]) -> None:
    async def play() -> None:
        same(await played(engine, life), await played(engine, life, forgets))

    asyncio.run(play())
