"""Which refusals are told at once and which are held back, and who is let in after all."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from contextengine_server.api.pipeline import refusals
from contextengine_server.errors import Draining, Overloaded
from tests.unit.api.desk import Desk, FakeCall


class Later:
    """Calls that are told later, with a clock that stands until it is moved on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **limits: Any) -> None:
        monkeypatch.setattr(refusals, "BURST", 1)
        monkeypatch.setattr(refusals, "RATE", 0.001)
        self.desk = Desk(**limits)

    def ask(self, tenant: str, left: float | None = None) -> tuple[FakeCall, asyncio.Task[None]]:
        call = FakeCall(tenant, left)
        admission = self.desk.admission

        async def enter() -> None:
            if (turn := admission.enter(call, admission.calls)) is not None:
                await turn

        task = asyncio.create_task(enter())
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # it was seen
        return call, task

    @property
    def held(self) -> float:
        return self.desk.metrics.snapshot()["contextengine.calls.held_back"]


async def test_the_first_refusals_are_told_at_once_and_those_that_follow_fast_are_held_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    later = Later(monkeypatch, working=1, calls=1, max_wait_s=0.1)
    _, first = later.ask("a")
    _, at_once = later.ask("a")
    await asyncio.sleep(0)
    began = asyncio.get_running_loop().time()
    held = [later.ask("a")[1] for _ in range(50)]
    others = later.ask("b")[1]
    await asyncio.sleep(0)
    assert first.done()
    assert not first.exception()
    assert isinstance(at_once.exception(), Overloaded)
    assert isinstance(others.exception(), Overloaded)  # it had none so far
    assert (later.held, [one.done() for one in held]) == (50, [False] * 50)
    assert later.desk.refused("calls", "limit") == 2
    told: list[float] = []
    for one in held:
        one.add_done_callback(lambda _: told.append(asyncio.get_running_loop().time() - began))
    async with asyncio.timeout(10):
        await asyncio.wait(held)
    assert all(isinstance(one.exception(), Overloaded) for one in held)
    assert later.held == 0
    assert later.desk.refused("calls", "limit") == 52
    # Evenly over all of the time, and none later.
    assert min(told) < 0.1 < 0.2 < max(told)


async def test_calls_that_are_held_back_are_let_in_as_there_is_room_before_who_comes_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    later = Later(monkeypatch, working=1, calls=4, max_wait_s=60)
    let_in = [later.ask("a") for _ in range(4)]
    await asyncio.sleep(0)
    _, at_once = later.ask("a")
    held = [later.ask("a") for _ in range(3)]
    await asyncio.sleep(0)
    assert at_once.done()
    assert later.held == 3
    order = [*let_in, *held]
    for call, entered in order:
        async with asyncio.timeout(5):
            await entered
        later.desk.done(call)
        if len(order) < 20:
            order.append(later.ask("a"))  # comes in the same turn, and stands behind them
        await asyncio.sleep(0)
    assert all(entered.done() for _, entered in order)
    assert later.held == 0
    assert later.desk.refused("calls", "limit") == 1


async def test_a_call_that_was_let_in_and_goes_away_leaves_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    later = Later(monkeypatch, working=1, calls=1, max_wait_s=60)
    first, _ = later.ask("a")
    later.ask("a")
    await asyncio.sleep(0)
    gone, entering = later.ask("a")
    _, next_one = later.ask("a")
    await asyncio.sleep(0)
    later.desk.done(first)  # `gone` has its place now, and has not heard of it
    entering.cancel()
    await asyncio.sleep(0)
    assert entering.cancelled()
    later.desk.done(gone)
    async with asyncio.timeout(5):
        await next_one
    assert later.desk.admission.held("a")["calls"] == 1


async def test_what_is_held_back_hears_within_half_of_its_deadline_and_may_go_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    later = Later(monkeypatch, working=1, calls=1, max_wait_s=3_600)
    later.ask("a")
    later.ask("a")
    await asyncio.sleep(0)
    _, hurried = later.ask("a", left=0.1)
    _, gone = later.ask("a")
    await asyncio.sleep(0)
    assert later.held == 2
    gone.cancel()
    async with asyncio.timeout(5):
        await asyncio.wait([hurried, gone])
    assert isinstance(hurried.exception(), Overloaded)
    assert gone.cancelled()
    assert later.held == 0


async def test_a_server_that_drains_holds_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    later = Later(monkeypatch, working=1, calls=1, max_wait_s=3_600)
    call, _ = later.ask("a")
    later.ask("a")
    await asyncio.sleep(0)
    held = [later.ask("a")[1] for _ in range(5)]
    await asyncio.sleep(0)
    assert later.held == 5
    draining = asyncio.create_task(later.desk.admission.drain(60))
    async with asyncio.timeout(5):
        await asyncio.wait(held)
        later.desk.done(call)
        await draining
    assert all(isinstance(one.exception(), Draining) for one in held)


async def test_where_memory_is_short_or_too_many_are_held_all_are_told_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(refusals, "MOST_HELD", 3)
    later = Later(monkeypatch, working=1, calls=1, max_wait_s=3_600)
    for _ in range(2):
        later.ask("a")
    await asyncio.sleep(0)
    asked = [later.ask("a")[1] for _ in range(5)]
    await asyncio.sleep(0)
    assert [one.done() for one in asked] == [False] * 3 + [True] * 2
    monkeypatch.setattr(refusals, "MOST_HELD", 100)
    monkeypatch.setattr(later.desk.admission.refusals, "_pressed", lambda: True)
    _, short = later.ask("a")
    await asyncio.sleep(0)
    assert isinstance(short.exception(), Overloaded)
    later.desk.admission.refusals.tell_all()
    await asyncio.wait(asked)
    assert all(isinstance(one.exception(), Overloaded) for one in asked)
