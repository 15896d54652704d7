"""Two servers over one store, in any turns, and with their memory lost at any time, are as one:
callers hear the same bytes, and the same rows are left."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.runtime.exchange import Exchange
from contextengine_server.wiring.replicas import exchange_of
from tests.properties.lives import ENGINES, Event, Happening, Player, Said, lives
from tests.properties.test_warm_and_cold import FOUND, OPTIONS, Left, left, played, same
from tests.unit.commands.house import Rows, Server

turns = st.lists(st.integers(0, 1), min_size=60, max_size=60)


class InTurns(Player):
    """Plays a life to several servers: `turns` says which is asked, event by event. What happens is
    told to the others before the next."""

    def __init__(
        self,
        servers: Sequence[Server],
        exchanges: Sequence[Exchange],
        turns: Sequence[int],
        forgets: frozenset[int],
    ) -> None:
        super().__init__(servers[0], forgets)
        self.servers, self.exchanges, self.turns = servers, exchanges, turns

    async def _event(self, number: int, event: Event) -> object:
        self.server = self.servers[self.turns[number]]
        try:
            return await super()._event(number, event)
        finally:
            for exchange in (*self.exchanges, *self.exchanges):
                await exchange.swap()


async def played_in_turns(
    engine: str, life: Sequence[Event], turns: Sequence[int], forgets: frozenset[int]
) -> Left:
    """Plays a life to two servers of its own."""
    rows = Rows()
    servers = [Server(rows, **{"engine.default": engine, **OPTIONS}) for _ in range(2)]
    exchanges = [
        exchange_of(server.core, server.tenants, name)
        for server, name in zip(servers, ("one", "two"), strict=True)
    ]
    for server, exchange in zip(servers, exchanges, strict=True):
        await server.open()
        await exchange.start()
    try:
        player = InTurns(servers, exchanges, turns, forgets)
        return await left(player, await player.play(life))
    finally:
        for server, exchange in zip(servers, exchanges, strict=True):
            await exchange.stop()
            await server.close()


def as_one(
    engine: str, life: Sequence[Event], turns: Sequence[int], forgets: frozenset[int]
) -> None:
    async def play() -> None:
        same(await played(engine, life), await played_in_turns(engine, life, turns, forgets))

    asyncio.run(play())


@pytest.mark.parametrize("engine", sorted(ENGINES))
@settings(max_examples=12)
@given(life=lives, turns=turns, forgets=st.frozensets(st.integers(0, 59), max_size=6))
def test_it_shows_in_nothing_who_is_asked(
    engine: str, life: list[Event], turns: list[int], forgets: frozenset[int]
) -> None:
    as_one(engine, life, turns, forgets)


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize("found", FOUND)
def test_lives_that_once_differed_by_turns(engine: str, found: str) -> None:
    as_one(engine, FOUND[found], [number % 2 for number in range(60)], frozenset())


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize("assigned", range(len(ENGINES)))
def test_a_turn_that_ended_elsewhere_keeps_no_engine(engine: str, assigned: int) -> None:
    """The first server saw the model call a tool. That the turn ended, and that another engine was
    assigned, happened on the second."""
    life: list[Event] = [
        Said(pb.ROLE_USER, (("text", 0, 200),)),
        Said(pb.ROLE_ASSISTANT, (("call", 0, 20),)),
        Happening("engine", assigned),
        Happening("compact", 0, 1),
        Happening("ask", 3),
    ]
    as_one(engine, life, [0, 0, 1, 0, 0], frozenset())


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_a_compaction_lists_only_what_it_made(engine: str) -> None:
    """And not what stood there before it, in a session that another goes on with."""
    life: list[Event] = [Said(pb.ROLE_USER, (("text", 0, 200),)) for _ in range(12)]
    life += [Happening("compact", 0, 1), Happening("host", 2, 1), Happening("continue")]
    life += [Said(pb.ROLE_USER, (("text", 0, 6),)), Happening("compact", 5, 0)]
    turns = [number % 2 for number in range(len(life))]
    as_one(engine, life, turns, frozenset())

    async def lists() -> list[list[object]]:
        heard = (await played(engine, life)).heard
        return [made[1] for made in (heard[12], heard[-1]) if isinstance(made[1], list)]  # type: ignore[index]

    before, now = asyncio.run(lists())
    assert not [one for one in now if one in before]
