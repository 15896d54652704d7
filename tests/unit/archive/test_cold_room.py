"""An end at any moment loses nothing, a session is moved and brought back once, and who deletes it
meanwhile wins."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from contextengine_server.archive.archived_store import ArchivedStore
from contextengine_server.archive.cold_room import STALE_MS, ColdRoom
from contextengine_server.errors import CorruptRow, StoreDown
from contextengine_server.store.memory import MemoryStore, Tables
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import SessionHead
from contextengine_server.store.sqlite import SqliteStore
from contextengine_server.testing.store.archives import long_life
from contextengine_server.testing.store.rows import SCOPE, Pen
from tests import databases
from tests.integration.harness import Clock

from .shelf import Shelf


class Ended(BaseException):
    """The process ends here."""


class Mortal:
    """What another does, until the process ends: at a number of its steps, just before it is done
    or just after."""

    def __init__(self, of: Any, steps: list[int], at: int, *, after: bool) -> None:
        self._of, self._steps, self._at, self._after = of, steps, at, after

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        work = getattr(self._of, name)

        async def done(*given: Any, **named: Any) -> Any:
            self._steps[0] += 1
            last = self._steps[0] == self._at
            if last and not self._after:
                raise Ended
            answer = await work(*given, **named)
            if last:
                raise Ended
            return answer

        return done


Lives = Callable[[], Store]


@pytest.fixture(params=["memory", "sqlite"])
def lives(request: pytest.FixtureRequest, tmp_path: Path) -> Lives:
    """Stores, one after the other, over one database."""
    if request.param == "memory":
        tables = Tables()
        return lambda: MemoryStore(tables)
    return lambda: SqliteStore(databases.place(tmp_path / "x.db"))


async def head_of(store: Store) -> SessionHead:
    head = await store.head(SCOPE)
    assert head is not None
    return head


def unnamed(head: SessionHead) -> SessionHead:
    return replace(head, commit_id=b"", ancestors=b"", archived="")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("way", ["out", "back"])
async def test_an_end_at_any_moment_loses_nothing(lives: Lives, way: str, after: bool) -> None:
    clock, shelf, ends = Clock(), Shelf(), 0
    for at in range(1, 20):
        store = lives()
        await store.open()
        if at == 1:
            pen = await long_life(store)
            rows = await store.messages(SCOPE, retired=True)
            summaries = await store.summaries(SCOPE, retired=True)
            whole = unnamed(pen.head)
        head = await head_of(store)
        room = ColdRoom(store, shelf, clock)
        if way == "back" and not head.archived:
            assert await room.put_away(head) is not None
            head = await head_of(store)
        if way == "out" and head.archived:
            head_back = await room.bring_back(head)
            assert head_back is not None
            head = head_back
        steps = [0]
        store.archives = Mortal(store.archives, steps, at, after=after)  # type: ignore[assignment]
        dying: Any = Mortal(shelf, steps, at, after=after)
        mortal = ColdRoom(store, dying, clock)
        over = False
        try:
            await (mortal.put_away(head) if way == "out" else mortal._bring_back(head))
            over = True
        except Ended:
            ends += 1
        await store.close()

        again = lives()
        await again.open()
        room = ColdRoom(again, shelf, clock)
        clock.ms += STALE_MS + 1
        await room.clean()
        found = ArchivedStore(again, room)
        is_there = (await head_of(again)).archived
        assert len(shelf.held) == (1 if is_there else 0)
        assert await found.messages(SCOPE, retired=True) == rows
        assert await found.summaries(SCOPE, retired=True) == summaries
        assert unnamed(await head_of(again)) == whole
        await again.close()
        if over:
            break
    assert ends == (4 if way == "out" else 3)


async def test_however_many_ask_it_is_read_once(lives: Lives) -> None:
    store, shelf = lives(), Shelf()
    await store.open()
    pen = await long_life(store)
    room = ColdRoom(store, shelf, Clock())
    assert await room.put_away(pen.head) is not None
    asked: list[str] = []

    async def note(what: str) -> None:
        asked.append(what)
        await asyncio.sleep(0.01)

    shelf.before = note
    found = ArchivedStore(store, room)
    calls = [found.messages(SCOPE) for _ in range(20)]
    given_up = asyncio.create_task(found.summaries(SCOPE))
    await asyncio.sleep(0)
    given_up.cancel()
    answers = await asyncio.gather(*calls)
    assert all(answer == answers[0] for answer in answers)
    assert answers[0]
    assert asked == ["get"]
    await store.close()


async def test_two_servers_part() -> None:
    tables, shelf, clock = Tables(), Shelf(), Clock()
    one, two = MemoryStore(tables), MemoryStore(tables)
    await one.open()
    await two.open()
    pen = await long_life(one)
    rows = await one.messages(SCOPE, retired=True)
    rooms = [ColdRoom(store, shelf, clock) for store in (one, two)]
    moved = await asyncio.gather(*(room.put_away(pen.head) for room in rooms))
    assert sorted(row is None for row in moved) == [False, True]
    head = await head_of(one)
    backs = await asyncio.gather(*(room.bring_back(head) for room in rooms))
    assert backs[0] == backs[1] == await head_of(two)
    assert not (await head_of(two)).archived
    assert sum(room.counts.restored for room in rooms) == 1
    assert await two.messages(SCOPE, retired=True) == rows


async def test_who_stood_still_for_long_leaves_nothing(lives: Lives) -> None:
    store, shelf, clock = lives(), Shelf(), Clock()
    await store.open()
    pen = await long_life(store)
    others = ColdRoom(store, shelf, clock)

    async def pause(what: str) -> None:
        if what == "put":
            shelf.before = None
            clock.ms += STALE_MS + 1
            await others.clean()  # which gives up what was reserved

    shelf.before = pause
    assert await ColdRoom(store, shelf, clock).put_away(pen.head) is None
    assert shelf.held == {}
    assert await store.head(SCOPE) == pen.head
    assert len(await store.messages(SCOPE, retired=True)) == 3
    await store.close()


async def test_who_deletes_meanwhile_wins(lives: Lives) -> None:
    store, shelf, clock = lives(), Shelf(), Clock()
    await store.open()
    room = ColdRoom(store, shelf, clock)
    found = ArchivedStore(store, room)
    for on in ("put", "get"):
        pen = await long_life(store)

        async def delete(what: str, on: str = on) -> None:
            if what == on:
                shelf.before = None
                await store.delete(SCOPE, expected_revision=None, cascade=False)

        if on == "put":
            shelf.before = delete
            assert await room.put_away(pen.head) is None
        else:
            assert await room.put_away(pen.head) is not None
            shelf.before = delete
            assert await found.messages(SCOPE) == []
        assert await store.head(SCOPE) is None
        assert await store.messages(SCOPE, retired=True) == []
        clock.ms += STALE_MS + 1
        await room.clean()
        assert shelf.held == {}
    await store.close()


async def test_another_life_under_the_name_gets_nothing_of_the_first(lives: Lives) -> None:
    store, shelf = lives(), Shelf()
    await store.open()
    room = ColdRoom(store, shelf, Clock())
    pen = await long_life(store)
    assert await room.put_away(pen.head) is not None
    gone = await head_of(store)
    await ArchivedStore(store, room).delete(SCOPE, expected_revision=None, cascade=False)
    assert shelf.held == {}  # at once
    again = Pen(store, incarnation="another")
    await again.write(count=1)
    assert await room.bring_back(gone) == again.head
    assert len(await store.messages(SCOPE, retired=True)) == 1
    await store.close()


async def test_what_is_wrong_is_said_with_the_object_and_changes_nothing(lives: Lives) -> None:
    store, shelf = lives(), Shelf()
    await store.open()
    room = ColdRoom(store, shelf, Clock())
    found = ArchivedStore(store, room)
    pen = await long_life(store)
    assert await room.put_away(pen.head) is not None
    head = await head_of(store)
    whole = dict(shelf.held)
    shelf.broken = True
    with pytest.raises(StoreDown, match="in the archive") as down:
        await found.summaries(SCOPE)
    assert down.value.retry_after_ms == 1_000
    shelf.broken = False
    shelf.held[head.archived] = shelf.held[head.archived][:-1]
    with pytest.raises(CorruptRow, match=head.archived):
        await found.changes(SCOPE, 0)
    shelf.held.clear()
    with pytest.raises(CorruptRow, match="is not there"):
        await found.atom_of(SCOPE, 1)
    assert await head_of(store) == head
    assert (room.counts.failed, room.counts.damaged) == (3, 2)
    shelf.held.update(whole)
    assert len(await found.messages(SCOPE, retired=True)) == 3
    await store.close()
