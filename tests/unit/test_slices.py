"""Long work has others run between its slices; short work is never interrupted."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, nullcontext
from itertools import pairwise

import pytest

from contextengine_server import slices
from contextengine_server.context.work import Work, at_once, batches
from contextengine_server.fairness.place import PLACE
from contextengine_server.slices import (
    FREE_TURNS,
    FREED_AT_ONCE,
    HELD_STILL_S,
    SLICE_S,
    Pace,
    aside,
    in_slices,
    let_go,
)


class Hours:
    """A clock that moves on by so much at each look."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def adding(numbers: range) -> Work[int]:
    total = 0
    for number in numbers:
        total += number
        yield
    return total


@pytest.fixture
async def turns() -> AsyncIterator[list[int]]:
    """Grows by one at each turn of the loop."""
    seen: list[int] = []

    async def count() -> None:
        while True:
            seen.append(1)
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    yield seen
    counting.cancel()


async def test_others_run_between_slices(turns: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "perf_counter", Hours(SLICE_S / 2))
    before = len(turns)
    assert await in_slices(adding(range(100))) == sum(range(100))
    slices_taken = 50  # of two steps each
    assert len(turns) - before >= slices_taken * FREE_TURNS


async def test_of_much_long_work_one_has_a_slice_in_a_turn(
    turns: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "perf_counter", Hours(SLICE_S))
    slices_at: list[int] = []

    def long() -> Work[None]:
        for _ in range(20):
            slices_at.append(len(turns))
            yield

    works = [asyncio.create_task(in_slices(long())) for _ in range(10)]
    works[3].cancel()
    await asyncio.wait(works)
    began, later = slices_at[:9], slices_at[9:]
    assert len(later) == 9 * 19
    apart = [second - first for first, second in pairwise(sorted(later))]
    assert min(apart) > FREE_TURNS, "turns without a slice are wanting"
    assert len(set(began)) <= 2, "what begins waits for nobody"


async def test_short_work_is_not_interrupted(
    turns: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "perf_counter", Hours(SLICE_S / 1_000))
    before = len(turns)
    assert await in_slices(adding(range(100))) == sum(range(100))
    assert len(turns) == before


async def test_what_fails_fails_as_it_would_at_once() -> None:
    def failing() -> Work[None]:
        yield
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        await in_slices(failing())
    with pytest.raises(LookupError, match="gone"):
        at_once(failing())


def test_at_once_answers_the_same() -> None:
    assert at_once(adding(range(7))) == 21


def test_batches_hold_everything_in_order() -> None:
    assert list(batches(range(7), 3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(batches([])) == []


async def test_work_aside_leaves_the_loop_to_others() -> None:
    turned = threading.Event()
    asyncio.get_running_loop().call_soon(turned.set)

    def work() -> int:
        assert turned.wait(60), "the loop stands still"
        return 1

    assert await aside(work) == 1


async def test_what_work_aside_throws_is_thrown() -> None:
    def work() -> None:
        raise ValueError("so it is")

    with pytest.raises(ValueError, match="so it is"):
        await aside(work)


async def test_whoever_is_cancelled_waits_for_the_end_of_work_aside() -> None:
    began, go_on, ended = threading.Event(), threading.Event(), []

    def work() -> None:
        began.set()
        assert go_on.wait(60)
        ended.append(1)

    waiting = asyncio.create_task(aside(work))
    await asyncio.to_thread(began.wait, 60)
    waiting.cancel()
    asyncio.get_running_loop().call_soon(go_on.set)
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended


class Thing:
    """Something that is known to be gone."""


async def test_a_long_list_is_let_go_of_some_at_a_time() -> None:
    things = [Thing() for _ in range(3 * FREED_AT_ONCE)]
    living = weakref.WeakSet(things)
    let_go(things)
    del things
    left = [3 * FREED_AT_ONCE, len(living)]
    while living:
        await asyncio.sleep(0)
        left.append(len(living))
    assert max(before - after for before, after in pairwise(left)) == FREED_AT_ONCE


async def test_much_is_let_go_of_a_piece_in_a_turn() -> None:
    many = [{at: Thing() for at in range(2 * FREED_AT_ONCE)} for _ in range(3)]
    living = weakref.WeakSet(thing for things in many for thing in things.values())
    let_go(*many)
    del many
    left = [len(living)]
    while living:
        await asyncio.sleep(0)
        left.append(len(living))
    assert max(before - after for before, after in pairwise(left)) == FREED_AT_ONCE


async def test_what_others_hold_is_not_touched_until_they_let_go_of_it_as_well() -> None:
    things = [Thing() for _ in range(2 * FREED_AT_ONCE)]
    living = weakref.WeakSet(things)
    for _ in range(2):
        let_go(things)
        await asyncio.sleep(2 * HELD_STILL_S)
    assert len(things) == 2 * FREED_AT_ONCE
    del things
    left = [len(living)]
    async with asyncio.timeout(60):
        while living:
            await asyncio.sleep(0)
            left.append(len(living))
    assert max(before - after for before, after in pairwise(left)) == FREED_AT_ONCE


async def test_a_short_list_is_let_go_of_at_once() -> None:
    things = [Thing()]
    living = weakref.WeakSet(things)
    let_go(things)
    del things[:]
    assert not living


def test_without_a_loop_all_goes_at_once() -> None:
    things = [Thing() for _ in range(2 * FREED_AT_ONCE)]
    living = weakref.WeakSet(things)
    let_go(things)
    del things[:]
    assert not living


async def test_who_is_cancelled_again_and_again_still_waits_for_the_thread() -> None:
    going, may_end = threading.Event(), threading.Event()

    def work() -> None:
        going.set()
        may_end.wait(60)

    asking = asyncio.create_task(aside(work))
    await asyncio.to_thread(going.wait, 60)
    for _ in range(5):
        asking.cancel()
        for _ in range(10):
            await asyncio.sleep(0)
        assert not asking.done(), "what the thread reads would be free to change"
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await asking


class Yielding:
    """A place that gives way, or does not."""

    def __init__(self, *, gives: bool) -> None:
        self.gives = gives

    def away(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def gives_way(self) -> bool:
        return self.gives


@pytest.mark.parametrize("gives", [False, True])
async def test_between_slices_of_who_gives_way_others_have_many_turns(
    turns: list[int], gives: bool
) -> None:
    token = PLACE.set(Yielding(gives=gives))
    before = len(turns)
    await Pace().turn()
    PLACE.reset(token)
    assert (len(turns) - before > FREE_TURNS + 3) is gives
