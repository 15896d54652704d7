"""The threads that read: what is asked is answered, whatever becomes of who asked."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator

import pytest

from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.sqlite.readers import Readers


@pytest.fixture
async def readers() -> AsyncIterator[Readers]:
    made = Readers(
        [sqlite3.connect(":memory:", check_same_thread=False)], asyncio.get_running_loop()
    )
    yield made
    await made.stop()


def number(db: sqlite3.Connection, value: int) -> int:
    found: int = db.execute("SELECT ?", (value,)).fetchone()[0]
    return found


def told(db: sqlite3.Connection, last: threading.Event) -> int:
    last.set()
    return 50


def held(db: sqlite3.Connection, begun: threading.Event, go: threading.Event) -> str:
    begun.set()
    assert go.wait(10)
    return "held"


async def test_many_reads_are_answered_each_with_its_own(readers: Readers) -> None:
    asked = [readers.run(number, value) for value in range(500)]
    assert await asyncio.gather(*asked) == list(range(500))


async def test_what_others_answered_meanwhile_is_taken_over_at_once(readers: Readers) -> None:
    loop = asyncio.get_running_loop()
    woken = 0
    wake = loop.call_soon_threadsafe

    def counted(*args: object) -> asyncio.Handle:
        nonlocal woken
        woken += 1
        return wake(*args)  # type: ignore[arg-type]

    loop.call_soon_threadsafe = counted  # type: ignore[method-assign,assignment]
    last = threading.Event()
    waiting = [asyncio.ensure_future(readers.run(number, value)) for value in range(50)]
    waiting.append(asyncio.ensure_future(readers.run(told, last)))
    await asyncio.sleep(0)
    assert last.wait(10)  # the loop stands still while all of them are answered
    assert await asyncio.gather(*waiting) == list(range(51))
    assert woken <= 2  # the last one may say so once it has let the loop go on


async def test_a_failure_is_told_to_who_asked_and_stops_nobody(readers: Readers) -> None:
    with pytest.raises(StoreUnavailable, match="no such table") as raised:
        await readers.run(lambda db: db.execute("SELECT * FROM missing"))
    assert raised.value.__cause__ is None
    with pytest.raises(ZeroDivisionError):
        await readers.run(lambda db: 1 // 0)
    assert await readers.run(number, 3) == 3


async def test_nobody_reads_for_a_call_that_was_cancelled(readers: Readers) -> None:
    begun, go, read = threading.Event(), threading.Event(), list[int]()
    first = asyncio.ensure_future(readers.run(held, begun, go))
    gone = asyncio.ensure_future(readers.run(lambda db: read.append(1)))
    await asyncio.sleep(0)
    assert await asyncio.to_thread(begun.wait, 10)
    gone.cancel()
    first.cancel()  # amid its reading: its answer is nobody's
    await asyncio.sleep(0)
    go.set()
    assert await readers.run(number, 3) == 3
    assert not read


async def test_what_was_asked_before_the_end_is_answered_and_nothing_after(
    readers: Readers,
) -> None:
    begun, go = threading.Event(), threading.Event()
    asked = [asyncio.ensure_future(readers.run(held, begun, go))]
    asked += [asyncio.ensure_future(readers.run(lambda db: "asked")) for _ in range(3)]
    await asyncio.sleep(0)
    stopping = asyncio.ensure_future(readers.stop())
    await asyncio.sleep(0)
    with pytest.raises(StoreUnavailable, match="closed"):
        await readers.run(number, 3)
    go.set()
    assert await asyncio.gather(*asked) == ["held", "asked", "asked", "asked"]
    await stopping
