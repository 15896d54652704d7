"""The store of chunks that plugins for PyClaw keep, where no server has them at work: in a script,
or a test of the plugin's."""

from __future__ import annotations

import asyncio
import copy
from pathlib import Path

from contextengine_server.plugins.chunk_file import DAY_S
from contextengine_server.plugins.context_store import ContextStore


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


async def ids(store: ContextStore, session: str = "s", *, all_: bool = False) -> list[str]:
    return [chunk["chunk_id"] for chunk in await store.get_chunks(session, all_)]


async def test_chunks_are_kept_in_order_and_written_over(tmp_path: Path) -> None:
    store = ContextStore(tmp_path / "new" / "context.db", Clock())
    await store.initialize()
    await store.save_chunk("s", "b", "one")
    await store.save_chunks_batch(
        [
            {"session_id": "s", "chunk_id": "a", "content": "two"},
            {"session_id": "other", "chunk_id": "b", "content": "three"},
        ]
    )
    await store.save_chunk("s", "b", "one, again")
    assert [chunk["content"] for chunk in await store.get_chunks("s")] == ["one, again", "two"]
    await store.close()
    assert await ids(ContextStore(tmp_path / "new" / "context.db")) == ["b", "a"]


async def test_what_is_compacted_is_there_when_asked_for(tmp_path: Path) -> None:
    store = ContextStore(tmp_path / "context.db", Clock())
    for name in ("a", "b", "c"):
        await store.save_chunk("s", name, name)
    await store.mark_compacted("s", ["a", "c", "none"])
    assert await ids(store) == ["b"]
    assert await ids(store, all_=True) == ["a", "b", "c"]
    assert await store.get_stats() == {"sessions": 1, "chunks": 3, "compacted": 2, "bytes": 3}


async def test_sessions_are_erased_by_name_and_by_age(tmp_path: Path) -> None:
    clock = Clock()
    store = ContextStore(tmp_path / "context.db", clock)
    for session in ("old", "written again", "named"):
        await store.save_chunk(session, "a", "x")
    clock.now += 2 * DAY_S
    await store.save_chunk("written again", "b", "x")
    await store.delete_session("named")
    assert await store.prune_old_sessions(1) == 1
    assert [await ids(store, session) for session in ("old", "written again", "named")] == [
        [],
        ["a", "b"],
        [],
    ]


async def test_threads_write_one_after_the_other(tmp_path: Path) -> None:
    """Each session of a plugin has one of its own."""
    store = ContextStore(tmp_path / "context.db")

    def write(session: str) -> None:
        async def many() -> None:
            for number in range(20):
                await store.save_chunk(session, str(number), "x")

        asyncio.run(many())

    await asyncio.gather(*(asyncio.to_thread(write, f"s{n}") for n in range(4)))
    assert (await store.get_stats())["chunks"] == 80


async def test_a_copy_has_the_same_chunks(tmp_path: Path) -> None:
    """A plugin that holds its store is copied for every session."""
    store = ContextStore(tmp_path / "context.db")
    await store.save_chunk("s", "a", "x")
    copied = copy.deepcopy(store)
    await copied.save_chunk("s", "b", "y")
    assert await ids(store) == await ids(copied) == ["a", "b"]
