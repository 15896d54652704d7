"""Law 9 over the archive: a life whose sessions go into the archive at any time is heard as one
that never left memory, byte for byte, and leaves the same rows."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from contextengine_server.archive.archived_store import ArchivedStore
from contextengine_server.archive.cold_room import ColdRoom
from contextengine_server.context.scope import Scope
from contextengine_server.store.cached_heads import CachedHeads
from contextengine_server.store.memory import MemoryStore
from contextengine_server.store.protocols import Store
from contextengine_server.store.sqlite import SqliteStore
from tests.databases import place
from tests.properties.lives import ENGINES, Event, Happening, Player, Said, lives
from tests.properties.test_warm_and_cold import OPTIONS
from tests.unit.archive.shelf import Shelf
from tests.unit.commands.house import AGENT, TENANT, Rows, Server


class ColdPlayer(Player):
    """Plays a life, and brings all sessions into the archive before some events; before every other
    of these memory is let go as well."""

    def __init__(self, server: Server, room: ColdRoom | None, colds: frozenset[int]) -> None:
        super().__init__(server)
        self._room, self._colds = room, colds

    async def _event(self, number: int, event: Event) -> object:
        if self._room is not None and number in self._colds:
            for head in await self.server.store.list_sessions(TENANT, limit=1_000):
                if head.last_sequence > head.parent_sequence and not head.archived:
                    await self._room.put_away(head)
            if number % 2:
                self.forget()
        return await super()._event(number, event)


async def played(
    engine: str, life: Sequence[Event], inner: Store, colds: frozenset[int] | None = None
) -> tuple[list[object], dict[str, object], int]:
    """What is heard of a life, the rows that it leaves, and how often a session came back."""
    rows = Rows()
    room, store = None, inner
    if colds is not None:
        room = ColdRoom(inner, Shelf(), rows.clock)
        store = ArchivedStore(inner, room)
    server = Server(rows, store=store, **{"engine.default": engine, **OPTIONS})
    await server.open()
    try:
        player = ColdPlayer(server, room, colds or frozenset())
        heard = await player.play(life)
        left: dict[str, object] = {}
        for ref in dict.fromkeys(player.refs):
            scope = Scope(TENANT, AGENT, ref.session)
            messages = await store.messages(scope, retired=True)
            summaries = await store.summaries(scope, retired=True)
            head = await store.head(scope)
            named = None if head is None else replace(head, commit_id=b"", ancestors=b"")
            left[ref.session] = named, messages, summaries
        return heard, left, room.counts.restored if room is not None else 0
    finally:
        await server.close()


def as_if_warm(engine: str, life: Sequence[Event], colds: frozenset[int]) -> int:
    """Plays a life warm, and with an archive over two stores; how often a session came back."""

    async def play() -> int:
        heard, left, _ = await played(engine, life, MemoryStore())
        count = 0
        with tempfile.TemporaryDirectory() as directory:
            sqlite = CachedHeads(SqliteStore(place(Path(directory) / "x.db")))
            for store in (MemoryStore(), sqlite):
                again, rows, restored = await played(engine, life, store, colds)
                for number, (here, there) in enumerate(zip(heard, again, strict=True)):
                    assert here == there, f"event {number}"
                assert left == rows
                count += restored
        return count

    return asyncio.run(play())


colds = st.one_of(
    st.just(frozenset(range(60))), st.frozensets(st.integers(0, 59), min_size=1, max_size=30)
)


@pytest.mark.parametrize("engine", sorted(ENGINES))
@settings(max_examples=10)
@given(life=lives, colds=colds)
def test_the_archive_shows_in_nothing(
    engine: str, life: list[Event], colds: frozenset[int]
) -> None:
    as_if_warm(engine, life, colds)


TALK: list[Any] = [
    Said(2, (("call", 0, 200), ("call", 1, 20)), "pinned"),
    Said(3, (("result", 1, 200),)),
    Said(2, (("text", 0, 200),)),
    Said(2, (("text", 2, 60),)),
    Happening("ask", 3),
    Happening("compact", 7, 2),
    Said(3, (("result", 0, 20), ("text", 1, 20))),
    Happening("continue", 3, 5),
    Said(1, (("text", 1, 200),)),
    Happening("ask", 7, 1),
    Happening("rewind", 1),
    Happening("ask", 6, 4),
    Happening("undo", 1),
    Happening("end", 0),
    Happening("ask", 2, 2),
]


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_sessions_do_come_and_go(engine: str) -> None:
    assert as_if_warm(engine, TALK, frozenset(range(60))) >= 10
