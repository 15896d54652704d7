"""Law 9 over whole lives: whoever keeps everything in memory and whoever lets it go at any time
hear the same bytes and leave the same rows; and so does whoever keeps them in another store."""

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

from contextengine_server.context.scope import Scope
from contextengine_server.store.protocols import Store
from contextengine_server.store.sqlite import SqliteStore
from tests.databases import place
from tests.properties.lives import ENGINES, Event, Happening, Player, Said, lives
from tests.unit.commands.house import AGENT, TENANT, Rows, Server

OPTIONS: dict[str, Any] = {
    f"engine.{name}.{key}": value
    for name, options in ENGINES.items()
    for key, value in options.items()
}

forgotten = st.one_of(
    st.just(frozenset(range(60))), st.frozensets(st.integers(0, 59), min_size=1, max_size=30)
)


class Left:
    """What is heard of a life, and the rows that it leaves."""

    def __init__(self, heard: list[object], rows: dict[str, object]) -> None:
        self.heard, self.rows = heard, rows


async def played(
    engine: str,
    life: Sequence[Event],
    forgets: frozenset[int] = frozenset(),
    store: Store | None = None,
) -> Left:
    """Plays a life to a server of its own."""
    server = Server(Rows(), store=store, **{"engine.default": engine, **OPTIONS})
    await server.open()
    try:
        player = Player(server, forgets)
        return await left(player, await player.play(life))
    finally:
        await server.close()


async def left(player: Player, heard: list[object]) -> Left:
    """What was heard, and the rows. Commits have names that chance gave them."""
    rows: dict[str, object] = {}
    for ref in dict.fromkeys(player.refs):
        scope, store = Scope(TENANT, AGENT, ref.session), player.server.store
        head = await store.head(scope)
        rows[ref.session] = (
            None if head is None else replace(head, commit_id=b"", ancestors=b""),
            await store.messages(scope, retired=True),
            await store.summaries(scope, retired=True),
        )
    return Left(heard, rows)


def same(one: Left, other: Left) -> None:
    """Says where the first differs from the other."""
    for number, (here, there) in enumerate(zip(one.heard, other.heard, strict=True)):
        assert here == there, f"event {number}"
    assert one.rows == other.rows


def as_anywhere(engine: str, life: Sequence[Event], forgets: frozenset[int]) -> None:
    """Plays a life to who keeps everything in memory, to who lets it go, and to who does so over
    another store."""

    async def play() -> None:
        warm = await played(engine, life)
        same(warm, await played(engine, life, forgets))
        with tempfile.TemporaryDirectory() as directory:
            store = SqliteStore(place(Path(directory) / "x.db"))
            same(warm, await played(engine, life, forgets, store))

    asyncio.run(play())


@pytest.mark.parametrize("engine", sorted(ENGINES))
@settings(max_examples=12)
@given(life=lives, forgets=forgotten)
def test_memory_and_store_show_in_nothing(
    engine: str, life: list[Event], forgets: frozenset[int]
) -> None:
    as_anywhere(engine, life, forgets)


TEXT, CALL = ("text", 0, 60), ("call", 0, 20)
FOUND: dict[str, list[Event]] = {
    "a step that shows nothing is the newest": [
        Happening("model", 1),
        Said(3, (("result", 2, 20), ("result", 2, 20))),
        Happening("ask", 6),
    ],
    "a list takes the place of what a fork's parent was answered late": [
        Said(2, (CALL,)),
        Said(1, (("text", 0, 200),)),
        Happening("fork"),
        Said(3, (("result", 0, 200), ("result", 0, 6))),
        Happening("live", 2, 2),
    ],
    "what a list has behind the last that is known is before the window": [
        Said(2, (("call", 1, 200), ("call", 0, 60))),
        Said(1, (("result", 0, 60),)),
        Happening("engine", 0, 6),
        Said(2, (("thought", 1, 6),)),
        Said(2, (("text", 0, 60), ("call", 0, 200))),
        Happening("ask", 1, 1),
        Said(5, (("call", 1, 60),)),
        Said(2, (("thought", 0, 200),)),
        Happening("compact", 2, 7),
        Said(2, (("thought", 2, 200),)),
        Said(1, (("text", 0, 20),)),
        Said(3, (("result", 1, 200),)),
        Happening("live", 2, 6),
    ],
    "a note stays one after a rewind": [
        Said(2, (("call", 0, 200), ("call", 2, 6))),
        Said(2, (("text", 2, 200), ("call", 1, 20))),
        Said(2, (("call", 1, 6), ("call", 0, 200))),
        Happening("ask", 7, 1),
        Happening("compact", 1, 1),
        Happening("live", 3, 6),
        Said(3, (("result", 0, 200), ("result", 0, 200))),
        Happening("live", 5, 7),
    ],
    "what a leading message shows is no large step": [
        Said(3, (("result", 0, 20), ("thought", 0, 60))),
        Said(5, (("call", 2, 60),)),
        Said(4, (("result", 2, 20), ("result", 1, 6), TEXT), "excluded"),
    ],
    "a compaction plans over the same": [
        Said(2, (("thought", 2, 20),)),
        Said(5, (("signed", 2, 200), ("call", 1, 6))),
        Said(4, (("text", 1, 20),)),
        Said(2, (("text", 0, 6), TEXT), "pinned"),
        Said(3, (("thought", 2, 6), ("text", 2, 200))),
        Said(5, (CALL,)),
        Said(3, (("result", 0, 60),)),
        Said(2, (("call", 0, 200), ("call", 2, 20))),
        Said(3, (("result", 1, 200),)),
        Happening("compact", 5, 5),
    ],
    "a compaction brings the same files back": [
        Said(2, (("call", 0, 6), ("call", 2, 20))),
        Said(3, (("result", 2, 20), ("result", 0, 200))),
        Said(1, (("text", 1, 20),)),
        Happening("compact", 0, 2),
        Happening("ask", 3),
    ],
    "a paste before the window moves what stands behind it": [
        Said(1, (("text", 1, 200),)),
        Said(2, (("text", 1, 200),)),
        Said(4, (("text", 0, 6), ("call", 0, 200))),
        Said(5, (("call", 2, 60),)),
        Happening("compact", 1, 7),
        Happening("undo", 5, 1),
        Happening("ask", 6, 4),
    ],
    "a late result moves every summary that is live": [
        Said(2, (("call", 1, 200), ("call", 2, 20))),
        Said(5, (("text", 2, 200),)),
        Said(3, (("result", 2, 200),)),
        Said(5, (("call", 1, 6),)),
        Said(4, (("signed", 2, 20), ("text", 0, 60), ("signed", 0, 60)), "excluded"),
        Said(2, (("text", 1, 6),)),
        Said(2, (("thought", 1, 200),)),
        Said(3, (("signed", 2, 6),)),
        Said(3, (("result", 1, 20),)),
        Happening("host", 6, 1),
        Said(3, (("result", 2, 6), ("result", 1, 20))),
        Happening("continue", 5, 2),
        Happening("compact", 3, 3),
    ],
    "a late result moves a summary that was taken over": [
        Said(2, (("call", 0, 200), ("call", 1, 20)), "pinned"),
        Said(2, (("text", 0, 200),)),
        Happening("model", 7),
        Said(2, (("text", 2, 60),)),
        Said(2, (("text", 2, 20), ("call", 1, 60))),
        Happening("compact", 7, 2),
        Said(3, (("result", 1, 200),)),
        Happening("continue", 3, 5),
        Said(3, (("result", 1, 20), ("thought", 2, 200), ("text", 1, 20))),
        Happening("host", 1, 4),
    ],
    "what was undone has an order of its own": [
        Said(1, (("result", 0, 60), ("call", 0, 200), ("text", 0, 6)), "excluded"),
        Said(2, (("text", 2, 200), ("call", 0, 6_000))),
        Said(2, (("thought", 0, 20),)),
        Happening("compact", 7, 7),
        Happening("engine", 2, 4),
        Happening("compact", 7, 3),
        Said(3, (("result", 0, 200),)),
        Happening("undo", 2, 2),
    ],
    "what became of a summary later is not shown where it was taken over": [
        Said(2, (("text", 2, 20), ("call", 1, 200))),
        Said(5, (("thought", 2, 20), ("signed", 0, 60), ("call", 2, 60))),
        Happening("back", 6),
        Said(2, (("text", 0, 6), ("call", 0, 60))),
        Happening("compact", 0, 7),
        Happening("continue", 1, 4),
        Happening("engine", 3, 7),
        Happening("fork", 0, 4),
        Happening("back", 3, 5),
        Happening("back", 6, 1),
        Happening("undo", 4),
        Happening("back", 2, 7),
        Happening("ask", 0, 1),
    ],
    "the first that is kept is that of its step": [
        Said(3, (("result", 0, 20),)),
        Said(2, (("thought", 1, 200),)),
        Said(2, (("thought", 1, 20), ("text", 1, 20), ("thought", 2, 20))),
        Said(5, (("call", 2, 20),), "excluded"),
        Happening("compact", 0, 4),
        Happening("undo", 1, 3),
    ],
}
"""Lives that once went another way where memory was let go."""


UNSUMMARIZED: list[Event] = [
    *[Said(1, (("text", 0, 200),)), Said(2, (CALL,)), Said(3, (("result", 0, 200),))] * 25,
    *[Said(2, (TEXT,)), Said(1, (("text", 0, 200),))] * 10,
]


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_much_that_is_not_summarized_yet_is_summarized_in_the_same_way(engine: str) -> None:
    """Many times what fits and what an engine takes at a time: who read the session just now knows
    as much of what is worth telling, and which files were read."""
    life = [*UNSUMMARIZED, Happening("compact", 1, 1), Happening("ask", 2, 7)]
    as_anywhere(engine, life, frozenset(range(len(life))))


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize("found", FOUND)
def test_lives_that_once_differed(engine: str, found: str) -> None:
    life = FOUND[found]
    for forgets in (range(len(life)), range(len(life) - 1, len(life))):
        as_anywhere(engine, life, frozenset(forgets))
