"""What ends while nobody asks: sessions that nobody wrote to for long; and which of several servers
sees to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from contextengine_server.session import sweeper as sweeper_module
from contextengine_server.session.address import Ref
from contextengine_server.session.children import ChildSweeper
from contextengine_server.session.lifecycle import Lifecycle
from contextengine_server.session.session import Session
from contextengine_server.session.sweeper import IdleSweeper, Lead, Sweeper
from tests.unit.commands.house import AGENT, Server, scope

from .sweeping import eventually, running

HOUR_MS = 3_600_000
S2, CHILD = Ref(AGENT, "s2"), Ref(AGENT, "child")


def idle_sweeper(server: Server, idle_ms: int = HOUR_MS) -> IdleSweeper:
    return IdleSweeper(server.core.sessions, server.store, server.core.lifecycle, idle_ms)


# Idle sessions.


async def test_what_nobody_wrote_to_for_longer_is_ended(server: Server) -> None:
    await server.ingest("a")
    server.clock.ms += HOUR_MS // 2
    await server.ingest("b", ref=S2)
    sweeper = idle_sweeper(server)
    server.clock.ms += HOUR_MS // 2
    await sweeper.sweep()
    assert not (await server.head()).ended
    server.clock.ms += 1
    await sweeper.sweep()
    assert (await server.head()).ended
    assert not (await server.head(S2)).ended
    (told,) = server.events("session:ended")
    assert (told.session, told.revision) == ("s1", 2)


async def test_what_is_ended_is_not_ended_again(server: Server) -> None:
    await server.ingest("a")
    server.clock.ms += HOUR_MS + 1
    for _ in range(2):
        await idle_sweeper(server).sweep()
        server.clock.ms += HOUR_MS
    assert (await server.head()).revision == 2


async def test_a_later_write_opens_it_again(server: Server) -> None:
    await server.ingest("a")
    server.clock.ms += HOUR_MS + 1
    await idle_sweeper(server).sweep()
    await server.ingest("b")
    assert not (await server.head()).ended
    await idle_sweeper(server).sweep()
    assert not (await server.head()).ended


async def test_what_was_written_to_meanwhile_goes_on(server: Server, other: Server) -> None:
    """It was found idle, and is looked at again under its lock."""
    await server.ingest("a")
    server.clock.ms += HOUR_MS + 1
    found = server.store.idle_sessions

    async def find(before_ms: int, limit: int) -> object:
        heads = await found(before_ms, limit)
        await other.ingest("b")
        return heads

    server.store.idle_sessions = find  # type: ignore[method-assign, assignment]
    await idle_sweeper(server).sweep()
    assert not (await server.head()).ended


async def test_one_that_cannot_be_ended_keeps_no_other_from_it(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one's row may be damaged, say, and is found first by each sweep."""
    await server.ingest("a")
    await server.ingest("b", ref=S2)
    server.clock.ms += HOUR_MS + 1
    end = type(server.core.lifecycle).end

    async def failing(self: Lifecycle, session: Session, *more: Any) -> Any:
        if session.scope.session == "s1":
            raise ValueError("its state is no JSON")
        return await end(self, session, *more)

    monkeypatch.setattr(type(server.core.lifecycle), "end", failing)
    await idle_sweeper(server).sweep()
    assert (await server.head(S2)).ended
    assert not (await server.head()).ended


async def test_it_sweeps_while_the_server_runs(server: Server) -> None:
    await server.ingest("a")
    server.clock.ms += HOUR_MS + 1
    async with running(idle_sweeper(server, idle_ms=800)):

        async def ended() -> bool:
            return (await server.head()).ended

        await eventually(ended)
    await server.ingest("b")
    server.clock.ms += HOUR_MS
    await asyncio.sleep(0.3)
    assert not (await server.head()).ended  # it was stopped


async def test_a_sweep_that_fails_is_tried_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.ingest("a")
    server.clock.ms += HOUR_MS + 1
    sweeper = idle_sweeper(server, idle_ms=1)
    sweep, tried = sweeper.sweep, []

    async def fails_once() -> None:
        tried.append(1)
        if len(tried) == 1:
            raise RuntimeError("no store")
        await sweep()

    monkeypatch.setattr(sweeper, "sweep", fails_once)
    async with running(sweeper):

        async def ended() -> bool:
            return (await server.head()).ended

        await eventually(ended)


@pytest.mark.parametrize(
    ("idle_ms", "pause"), [(1, 0.2), (800, 0.2), (4_000, 1.0), (240_000, 60.0), (HOUR_MS, 60.0)]
)
async def test_it_looks_four_times_in_that_time_and_each_minute_at_least(
    server: Server, monkeypatch: pytest.MonkeyPatch, idle_ms: int, pause: float
) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.Event().wait()

    monkeypatch.setattr(sweeper_module, "asyncio", _Asyncio(sleep))
    async with running(idle_sweeper(server, idle_ms)):
        async with asyncio.timeout(30):
            while not pauses:
                await asyncio.sleep(0)
    assert pauses == [pause]


class _Asyncio:
    """asyncio with another sleep."""

    def __init__(self, sleep: Callable[[float], Awaitable[None]]) -> None:
        self.sleep = sleep

    def __getattr__(self, name: str) -> object:
        return getattr(asyncio, name)


async def test_what_was_never_started_is_stopped(server: Server) -> None:
    sweeper = idle_sweeper(server)
    await sweeper.stop()
    async with running(sweeper):
        pass
    await sweeper.stop()
    await ChildSweeper(server.core.children).stop()


async def test_a_session_is_ended_when_nobody_writes_to_it(server: Server) -> None:
    """Whoever writes holds its lock: the sweep waits for it."""
    await server.ingest("a")
    server.clock.ms += HOUR_MS + 1
    async with server.core.sessions.open(scope(), lock=True):
        sweeping = asyncio.create_task(idle_sweeper(server).sweep())
        for _ in range(50):
            await asyncio.sleep(0)
        assert not (await server.head()).ended
    await sweeping
    assert (await server.head()).ended


# One server of several.


async def test_one_server_sweeps_for_all(server: Server, other: Server) -> None:
    swept: list[str] = []

    class Counted(IdleSweeper):
        def __init__(self, server: Server, name: str) -> None:
            super().__init__(server.core.sessions, server.store, server.core.lifecycle, 1_000)
            self.name = name

        async def sweep(self) -> None:
            swept.append(self.name)

        def pause_s(self) -> float:
            return 0.01

    sweepers = [Counted(server, "one"), Counted(other, "two")]
    for sweeper, one in zip(sweepers, (server, other), strict=True):
        sweeper.start(Lead(one.store.leases, sweeper.name))

    async def often() -> bool:
        return len(swept) > 5

    await eventually(often)
    assert set(swept) == {"one"}
    await sweepers[0].stop()
    swept.clear()
    await eventually(often)
    assert set(swept) == {"two"}, "the other goes on at once where the first ends in good order"
    await sweepers[1].stop()


async def test_what_every_server_must_do_each_does(server: Server) -> None:
    class Own(Sweeper):
        topic, failure, at_once = "own", "failed", True
        swept = 0

        async def sweep(self) -> None:
            self.swept += 1

        def pause_s(self) -> float:
            return 0.01

    sweepers = [Own(), Own()]
    for name, sweeper in zip("ab", sweepers, strict=True):
        sweeper.start(Lead(server.store.leases, name))

    async def both() -> bool:
        return all(sweeper.swept > 1 for sweeper in sweepers)

    await eventually(both)
    for sweeper in sweepers:
        await sweeper.stop()
