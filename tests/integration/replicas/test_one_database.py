"""Two servers over one PostgreSQL, each asked in turn: they answer as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest

from contextengine import AsyncClient
from contextengine.affinity import SESSION_HEADER, affinity
from contextengine.messages import user
from contextengine.types import AssembleRequest
from contextengine_proto.v1 import context_engine_pb2_grpc
from contextengine_server.app import running
from contextengine_server.config.load import load_settings
from contextengine_server.plugins.engines import installed_engines
from tests import postgres
from tests.integration.harness import PATIENCE_S, budget, ref

ROOM = budget(50_000)


@pytest.fixture
async def clients(tmp_path: Path) -> AsyncIterator[Sequence[AsyncClient]]:
    """A client of each of two servers."""
    postgres.require()
    flags = {"server.address": "127.0.0.1:0", "store.url": postgres.place(tmp_path)}
    async with AsyncExitStack() as stack:
        made = []
        for _ in range(2):
            app = await stack.enter_async_context(
                running(load_settings(None, flags, {}, installed_engines()))
            )
            made.append(await stack.enter_async_context(AsyncClient(app.address)))
        yield made


async def test_either_answers_what_both_were_told(clients: Sequence[AsyncClient]) -> None:
    for number in range(1, 21):
        await clients[number % 2].ingest(ref(), user(f"text {number}", id=f"m{number}"))
        one, other = [await client.assemble(ref(), budget=ROOM) for client in clients]
        assert [item.message.id for item in one.items] == [f"m{n}" for n in range(1, number + 1)]
        assert list(one.items) == list(other.items)
        assert one.context_hash == other.context_hash


async def test_a_header_that_names_another_session_changes_nothing(
    clients: Sequence[AsyncClient],
) -> None:
    """Whatever is said for who is between, a server serves what the request says."""
    said = iter(["", "x" * 5_000, affinity("agent", "another"), "%00 ~"] * 10)
    told = {}
    async with AsyncExitStack() as stack:
        wrong = [
            await stack.enter_async_context(
                AsyncClient(client._target, metadata=lambda: [(SESSION_HEADER, next(said))])
            )
            for client in clients
        ]
        for number in range(12):
            await wrong[number % 2].ingest(ref(), user(f"text {number}", id=f"m{number}"))
        for name, some in (("wrong", wrong), ("right", clients)):
            told[name] = [(await one.assemble(ref(), budget=ROOM)).context_hash for one in some]
    async with grpc.aio.insecure_channel(clients[0]._target) as channel:
        stub: Any = context_engine_pb2_grpc.ContextEngineStub(channel)
        bare = await stub.Assemble(AssembleRequest(session=ref(), budget=ROOM))
    assert len(bare.items) == 12
    assert {*told["wrong"], *told["right"]} == {bare.context_hash}


async def test_what_both_are_told_at_once_is_stored_once(clients: Sequence[AsyncClient]) -> None:
    await asyncio.gather(
        *(clients[n % 2].ingest(ref(), user(f"text {n // 2}", id=f"m{n // 2}")) for n in range(60))
    )
    for client in clients:
        items = (await client.assemble(ref(), budget=ROOM)).items
        assert sorted(item.message.id for item in items) == sorted(f"m{n}" for n in range(30))


async def test_a_watcher_of_one_sees_what_the_other_did(clients: Sequence[AsyncClient]) -> None:
    seen: asyncio.Queue[str] = asyncio.Queue()

    async def watch() -> None:
        async for event in clients[1].sessions.watch():
            seen.put_nowait(event.session_id)

    watching = asyncio.create_task(watch())
    try:
        async with asyncio.timeout(PATIENCE_S):
            number = 0
            while seen.empty():  # the watch may begin a little later
                number += 1
                await clients[0].ingest(ref(f"s{number}"), user("text"))
                await asyncio.sleep(0.05)
        assert seen.get_nowait().startswith("s")
    finally:
        watching.cancel()


async def test_what_is_assigned_at_one_serves_at_the_other(clients: Sequence[AsyncClient]) -> None:
    await clients[1].ingest(ref(), user("text"))
    assert (await clients[1].assemble(ref(), budget=ROOM)).engine_id == "dag"
    await clients[0].engines.assign(scope=ref(), engine_id="legacy")
    async with asyncio.timeout(PATIENCE_S):
        while (await clients[1].assemble(ref(), budget=ROOM)).engine_id != "legacy":
            await asyncio.sleep(0.02)
