"""Two servers over one PostgreSQL, any of them asked next and any of them killed at any time, are
as one that has everything to itself: callers hear the same bytes, and the same rows are left. A
hundred lives of 200 steps with a fixed seed; CONTEXTENGINE_TURNS_LIVES says how many, and
CONTEXTENGINE_TURNS_SEED from which on."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Coroutine
from contextvars import Context, ContextVar, copy_context
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import pytest

from contextengine_server.runtime.exchange import Exchange
from contextengine_server.store.postgres.store import PostgresStore
from contextengine_server.wiring.replicas import exchange_of
from tests import postgres
from tests.properties.lives import ENGINES, Event, Happening, Player, Said
from tests.properties.test_warm_and_cold import OPTIONS, Left, left, played, same
from tests.unit.commands.house import Rows, Server

from .test_warm_and_cold import life_of

T = TypeVar("T")

STEPS = 200
LIVES = int(os.environ.get("CONTEXTENGINE_TURNS_LIVES", "100"))
SEED = int(os.environ.get("CONTEXTENGINE_TURNS_SEED", "20261126"))
KILLED = 0.02
"""How many of the events a server is killed at."""

_owner: ContextVar[object] = ContextVar("owner", default=None)
"""Whose work is done: what dies with a server."""
_owners: WeakKeyDictionary[asyncio.Task[Any], object] = WeakKeyDictionary()


def owned(
    loop: asyncio.AbstractEventLoop, work: Any, context: Context | None = None
) -> asyncio.Task[Any]:
    """A task that is known to be its owner's."""
    task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, context=context)
    _owners[task] = _owner.get() if context is None else context.get(_owner)
    return task


class Replica:
    """A server with a store of its own over the shared database, which can be killed."""

    def __init__(self, rows: Rows, url: str, engine: str, name: str) -> None:
        self._context = copy_context()
        self._context.run(_owner.set, self)
        self.store = PostgresStore(url)
        self.server = Server(rows, store=self.store, **{"engine.default": engine, **OPTIONS})
        self.exchange: Exchange = exchange_of(self.server.core, self.server.tenants, name)

    def task(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Work of this server."""
        return asyncio.create_task(work, context=self._context)

    async def start(self) -> None:
        await self.task(self.server.open())
        await self.task(self.exchange.start())
        # From now on it swaps when it is told to, so that what happened is told before the next.
        beats = self.exchange._task
        assert beats is not None
        beats.cancel()
        await asyncio.wait([beats])

    async def stop(self) -> None:
        await self.task(self.exchange.stop())
        await self.task(self.server.close())

    async def kill(self) -> None:
        """Ends it where it stands, as SIGKILL does: its connections are cut, and nothing of what it
        was about to do is done any more."""
        connections = self.store._connections
        pool: Any = connections._pool
        connections._pool = None
        assert pool is not None
        lines: list[Any] = [holder._con for holder in pool._holders]
        lines += [self.store._transactions._line, self.store._feed._line, self.store._heads._line]
        for line in lines:
            if line is not None and line._transport is not None:
                line._transport.abort()
        mine = [
            task for task in asyncio.all_tasks() if _owners.get(task) is self and not task.done()
        ]
        for task in mine:
            task.cancel()
        if mine:
            await asyncio.wait(mine)
        pool.terminate()


class Killed(Player):
    """Plays a life to two servers, of which now and then one is killed: between two events, or in
    the middle of one that may be sent again, which is what its caller then does."""

    def __init__(self, rows: Rows, url: str, engine: str, chance: random.Random) -> None:
        self._made, self._chance, self.kills = 0, chance, 0
        self._of = rows, url, engine
        self.replicas = [self._new(), self._new()]
        super().__init__(self.replicas[0].server)

    def _new(self) -> Replica:
        self._made += 1
        return Replica(*self._of, f"run {self._made}")

    async def start(self) -> None:
        for replica in self.replicas:
            await replica.start()

    async def stop(self) -> None:
        for replica in self.replicas:
            await replica.stop()

    async def _kill(self, at: int) -> None:
        self.kills += 1
        await self.replicas[at].kill()
        self.replicas[at] = self._new()
        await self.replicas[at].start()

    async def _event(self, number: int, event: Event) -> object:
        at, dies = self._chance.randrange(2), self._chance.random() < KILLED
        if dies and not again(event):
            await self._kill(at)
        elif dies:
            self.server = self.replicas[at].server
            dying = self.replicas[at].task(super()._event(number, event))
            await asyncio.wait([dying], timeout=self._chance.uniform(0, 0.012))
            await self._kill(at)
            await asyncio.gather(dying, return_exceptions=True)  # nobody hears what it says
            at = 1 - at
        self.server = self.replicas[at].server
        try:
            return await self.replicas[at].task(super()._event(number, event))
        finally:
            for replica in (*self.replicas, *self.replicas):
                await replica.task(replica.exchange.swap())


def again(event: Event) -> bool:
    """Whether a caller who heard no answer may send it again and hears the same: a message has its
    id."""
    return isinstance(event, Said)


async def in_turns(engine: str, life: list[Event], url: str, seed: int) -> tuple[Left, int]:
    asyncio.get_running_loop().set_task_factory(owned)
    player = Killed(Rows(), url, engine, random.Random(seed))
    await player.start()
    try:
        return await left(player, await player.play(life)), player.kills
    finally:
        await player.stop()


def long_life(chance: random.Random) -> list[Event]:
    """A life of 200 events. What ends a session is left to shorter lives."""
    life: list[Event] = []
    while len(life) < STEPS:
        life += [
            event
            for event in life_of(chance)
            if not (isinstance(event, Happening) and event.what in ("end", "reset"))
        ]
    return life[:STEPS]


@pytest.mark.timeout(0)
def test_two_that_are_killed_are_as_one(tmp_path: Path) -> None:
    postgres.require()
    kills, differ = 0, list[str]()
    for seed in range(SEED, SEED + LIVES):
        chance = random.Random(seed)
        engine, life = sorted(ENGINES)[seed % len(ENGINES)], long_life(chance)

        async def play(engine: str = engine, life: list[Event] = life, seed: int = seed) -> int:
            alone = await played(engine, life)
            url = postgres.place(tmp_path / str(seed))
            together, kills = await in_turns(engine, life, url, seed)
            same(alone, together)
            return kills

        try:
            kills += asyncio.run(play())
        except AssertionError as error:
            differ.append(f"{engine}, CONTEXTENGINE_TURNS_SEED={seed}: {error!s:.200}")
    print(f"\n{LIVES} lives of {STEPS} steps, {kills} kills: {LIVES - len(differ)} left the same")
    assert not differ, "\n".join(differ)
    assert kills > LIVES
