"""What a plugin for PyClaw keeps in its `ContextStore` while the server has it at work: rows of the
server's store, which go with their session, and by their age at an operator's command alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner, Result

from contextengine_server.cli.application import app
from contextengine_server.context.scope import Scope
from contextengine_server.plugins.engines import installed_engines
from contextengine_server.store.chunks import Chunk, ChunkCounts, ChunkShelf
from tests.integration.harness import Clock, House, budget, house, ref
from tests.integration.plugins.field import SEED_PERSISTENT, installed, single
from tests.integration.plugins.test_hermes import turns

DAY_S = 86_400

KEEPING = """\
from pathlib import Path

from pyclaw.agents.context.plugins import CompactResult, ContextState, DefaultContextPlugin
from pyclaw.memory.context_store import ContextStore


class Keeping(DefaultContextPlugin):
    name = "keeping"

    def __init__(self):
        self.store = ContextStore(Path("data/context.db"))
        self.told = {}

    async def bootstrap(self, state: ContextState) -> None:
        await self.store.initialize()
        self.told["found"] = await self.store.get_chunks(state.session_id, True)

    async def on_compact_complete(self, result: CompactResult, state: ContextState) -> None:
        one, store = state.session_id, self.store
        await store.save_chunks_batch(
            [
                {"session_id": one, "chunk_id": "a", "content": "first"},
                {"session_id": one, "chunk_id": "b", "content": "second"},
                {"session_id": "archive", "chunk_id": "a", "content": "aside"},
            ]
        )
        await store.save_chunk(one, "a", "first, again")
        await store.mark_compacted(one, ["b"])
        self.told |= {
            "live": [chunk["chunk_id"] for chunk in await store.get_chunks(one)],
            "stats": await store.get_stats(),
            "pruned": await store.prune_old_sessions(0),
        }
        await store.delete_session("archive")
        self.told["left"] = await store.get_stats()
        await store.close()

    def get_status(self, state):
        return {"told": self.told}
"""


@pytest.fixture(autouse=True)
def looked_for_anew() -> Iterator[None]:
    installed_engines.cache_clear()
    yield
    installed_engines.cache_clear()


@asynccontextmanager
async def serving(
    directory: Path, engine: str, source: str, clock: Clock | None = None
) -> AsyncIterator[House]:
    where = installed(directory, single("sample", source, f"engine: {engine}\n"))
    more = {} if clock is None else {"clock": clock}
    wanted = {"plugins.directory": where, "engine.default": engine}
    async with house(directory, **more, **wanted) as made:
        yield made


async def compacted(home: House, name: str) -> None:
    await home.client.ingest_batch(ref(name), turns(12))
    assert (await home.client.compact(ref(name), force=True, budget=budget(3_000))).compacted


def files(directory: Path) -> list[Path]:
    return list(directory.glob("plugins/**/context.db"))


async def kept(home: House, name: str) -> list[Chunk]:
    """What the sample keeps of a session, in the server's store."""
    shelf = ChunkShelf(
        Scope("default", "agent", name), "sample/data/context.db", f"default:agent:{name}"
    )
    return await home.app.store.chunks.on(shelf, compacted=True)


async def test_chunks_are_rows_of_the_server_and_go_with_their_session(tmp_path: Path) -> None:
    """The sample of the guide, as it is."""
    async with serving(tmp_path, "persistent", SEED_PERSISTENT) as home:
        before = await home.app.store.size(Scope("default", "agent", "s1"))
        for name in ("s1", "s2"):
            await compacted(home, name)
            [chunk] = await kept(home, name)
            assert chunk.id == "compaction-1"
        assert files(tmp_path) == [], "no file beside the store"
        assert before == 0 < await home.app.store.size(Scope("default", "agent", "s1"))
        await home.client.sessions.delete(ref("s1"))
        assert [len(await kept(home, name)) for name in ("s1", "s2")] == [0, 1]


async def told(home: House) -> dict[str, object]:
    status = orjson.loads((await home.client.get_status(ref())).engine_status_json)
    found: dict[str, object] = status["told"]
    return found


async def test_every_operation_is_of_the_session_at_work(tmp_path: Path) -> None:
    clock = Clock()
    async with serving(tmp_path, "keeping", KEEPING, clock) as home:
        await compacted(home, "s1")
        said = await told(home)
        assert said == {
            "found": [],
            "live": ["a"],
            "stats": {"sessions": 2, "chunks": 3, "compacted": 1, "bytes": 23},
            "pruned": 0,
            "left": {"sessions": 1, "chunks": 2, "compacted": 1, "bytes": 18},
        }
        rows = [Chunk("a", "first, again", False, 1, clock.ms, clock.ms)]
        rows.append(Chunk("b", "second", True, 2, clock.ms, clock.ms))
        assert await kept(home, "s1") == rows

        await home.restart()
        await home.client.ingest_batch(ref(), turns(8, 12))
        await home.client.compact(ref(), force=True, budget=budget(3_000))
        at = clock.ms / 1000
        assert (await told(home))["found"] == [
            {"chunk_id": one.id, "content": one.content, "compacted": int(one.compacted)}
            | {"created_at": at, "updated_at": at}
            for one in rows
        ]


async def test_an_operator_prunes_and_nobody_else(tmp_path: Path) -> None:
    """What is said of a session keeps its chunks as well."""
    clock = Clock()
    clock.advance(-40 * DAY_S)
    async with serving(tmp_path, "persistent", SEED_PERSISTENT, clock) as home:
        for name in ("old", "written", "new"):
            await compacted(home, name)
            clock.advance(5 * DAY_S if name != "written" else 25 * DAY_S)
        await home.client.ingest_batch(ref("written"), turns(1, 12))

    def pruned(*more: str) -> Result:
        given = ["plugins", "prune", "--days", str(days), *more]
        return CliRunner().invoke(app, given)

    days = (_now_ms() - clock.ms) / 1000 / DAY_S + 30
    refused = await asyncio.to_thread(pruned, "--address", "127.0.0.1:1")
    assert "works on the store and not on a server" in str(refused.exception)
    absent = await asyncio.to_thread(pruned, "--store", str(tmp_path / "none.db"))
    assert absent.exit_code
    there = "--store", str(home.database)
    other = await asyncio.to_thread(pruned, *there, "--tenant", "other")
    assert "0 chunks of 0 sessions erased" in other.output
    done = await asyncio.to_thread(pruned, *there)
    assert "1 chunks of 1 sessions erased" in done.output, done.output
    assert "left are 2 of 2 sessions" in done.output
    await home.restart()
    assert [len(await kept(home, name)) for name in ("old", "written", "new")] == [0, 1, 1]
    assert (await home.app.store.chunks.totals("none")) == ChunkCounts()
    await home.stop()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
