"""Long work has others run between its slices; short work is never interrupted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from contextengine_server import slices
from contextengine_server.context.work import Work, at_once, batches
from contextengine_server.slices import SLICE_S, in_slices


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
    assert 40 <= len(turns) - before <= 60, "each slice takes two steps here"


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
