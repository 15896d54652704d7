"""What is kept in memory is never older than what was committed."""

from __future__ import annotations

import asyncio

import pytest

from contextengine_server.store.sqlite.remembered import Remembered


class Rows:
    """A read that can be held up."""

    def __init__(self, value: str | None) -> None:
        self.value = value
        self.reads = 0
        self.go = asyncio.Event()
        self.go.set()

    async def read(self) -> str | None:
        self.reads += 1
        found = self.value
        await self.go.wait()
        return found


async def test_a_value_is_read_once() -> None:
    memory: Remembered[str, str] = Remembered(9)
    rows = Rows("v1")
    assert [await memory.get("k", rows.read) for _ in range(3)] == ["v1"] * 3
    assert rows.reads == 1


async def test_what_is_not_there_is_asked_for_again() -> None:
    memory: Remembered[str, str] = Remembered(9)
    rows = Rows(None)
    assert await memory.get("k", rows.read) is None
    rows.value = "v1"
    assert await memory.get("k", rows.read) == "v1"


async def test_a_commit_is_seen_without_a_read() -> None:
    memory: Remembered[str, str] = Remembered(9)
    rows = Rows("v1")
    memory.put("k", "v2")
    assert await memory.get("k", rows.read) == "v2"
    assert rows.reads == 0


async def test_a_read_from_before_a_commit_does_not_come_back_after_it() -> None:
    for forget in (False, True):
        memory: Remembered[str, str] = Remembered(9)
        rows = Rows("v1")
        rows.go.clear()
        reading = asyncio.create_task(memory.get("k", rows.read))
        await asyncio.sleep(0)
        if forget:
            memory.drop("k")  # deleted; or committed, then pushed out
        else:
            memory.put("k", "v2")
        rows.value = "v2"
        rows.go.set()
        assert await reading == "v1"
        assert await memory.get("k", rows.read) == "v2"


async def test_a_cleared_memory_forgets_reads_under_way() -> None:
    memory: Remembered[str, str] = Remembered(9)
    rows = Rows("v1")
    rows.go.clear()
    reading = asyncio.create_task(memory.get("k", rows.read))
    await asyncio.sleep(0)
    memory.clear()
    rows.value = "v2"
    rows.go.set()
    await reading
    assert await memory.get("k", rows.read) == "v2"


async def test_the_least_recently_used_leaves() -> None:
    memory: Remembered[str, str] = Remembered(2)
    rows = Rows("read")
    memory.put("a", "1")
    memory.put("b", "2")
    assert await memory.get("a", rows.read) == "1"
    memory.put("c", "3")
    assert len(memory) == 2
    assert await memory.get("a", rows.read) == "1"
    assert await memory.get("b", rows.read) == "read"


async def test_a_read_that_fails_leaves_nothing_behind() -> None:
    memory: Remembered[str, str] = Remembered(2)

    async def fails() -> str:
        raise OSError("no disk")

    for _ in range(2):
        with pytest.raises(OSError, match="no disk"):
            await memory.get("k", fails)
    assert memory._reading == {}
