"""The store of chunks that plugins for PyClaw keep."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from typer.testing import CliRunner, Result

from contextengine_server.cli.application import app
from contextengine_server.context.scope import Scope
from contextengine_server.engines.hosted.held import session_name
from contextengine_server.engines.hosted.kept import erase_kept
from contextengine_server.plugins.context_store import DAY_S, ContextStore


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


async def test_what_a_deleted_session_said_is_erased_in_every_store(tmp_path: Path) -> None:
    """By the name that plugins know it by. A store that was never written gets no file."""
    kept, unused = ContextStore(tmp_path / "a.db"), ContextStore(tmp_path / "b.db")
    scopes = [Scope("t", "a", name) for name in ("gone", "stays")]
    for scope in scopes:
        await kept.save_chunk(session_name(scope), "c", f"secret {scope.session}")
    await erase_kept(scopes[:1])
    assert [await ids(kept, session_name(scope)) for scope in scopes] == [[], ["c"]]
    await kept.close()
    assert b"secret gone" not in (tmp_path / "a.db").read_bytes()
    assert not (tmp_path / "b.db").exists(), unused


async def test_one_that_cannot_be_erased_is_no_affair_of_the_others(tmp_path: Path) -> None:
    broken, kept = ContextStore(tmp_path / "broken.db"), ContextStore(tmp_path / "a.db")
    (tmp_path / "broken.db").write_bytes(b"no database" * 100)
    scope = Scope("t", "a", "s")
    await kept.save_chunk(session_name(scope), "c", "x")
    await erase_kept([scope])
    assert await ids(kept, session_name(scope)) == [], broken


async def test_an_operator_prunes_and_nobody_else(tmp_path: Path) -> None:
    clock = Clock()
    clock.now = time.time() - 40 * DAY_S
    store = ContextStore(tmp_path / "chunks.db", clock)
    await store.save_chunk("old", "a", "x")
    clock.now += 20 * DAY_S
    await store.save_chunk("new", "a", "x")
    await store.close()

    def pruned(file: str) -> Result:
        return CliRunner().invoke(app, ["plugins", "prune", str(tmp_path / file), "--days", "30"])

    (tmp_path / "text").write_text("not a database")
    for wrong in ("none.db", "text"):
        refused = await asyncio.to_thread(pruned, wrong)
        assert "is no store of chunks of a plugin" in str(refused.exception)
    done = await asyncio.to_thread(pruned, "chunks.db")
    assert "1 sessions erased; left are 1 with 1 chunks" in done.output
    assert [await ids(store, session) for session in ("old", "new")] == [[], ["a"]]
