"""The database fails over to a standby (`pg_ctl promote`) under two servers."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from contextengine import AsyncClient
from contextengine.messages import user
from contextengine_server.app import running
from contextengine_server.config.load import load_settings
from contextengine_server.plugins.engines import installed_engines
from tests import postgres
from tests.integration.harness import budget, ref

ROOM = budget(50_000)
PATIENCE_S = 60


@pytest.fixture
def pair() -> Iterator[tuple[postgres.Cluster, postgres.Cluster]]:
    """A database and its standby."""
    postgres.require()
    primary = postgres.Cluster()
    primary.start()
    standby = postgres.Cluster(of=primary)
    standby.start()
    yield primary, standby
    standby.remove()
    primary.remove()


def _either(primary: postgres.Cluster, standby: postgres.Cluster) -> str:
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    return f"postgresql://postgres@{hosts}/postgres?target_session_attrs=primary&wait=2"


@asynccontextmanager
async def _client(url: str) -> AsyncIterator[AsyncClient]:
    flags = {"server.address": "127.0.0.1:0", "store.url": url}
    settings = load_settings(None, flags, {}, installed_engines())
    async with running(settings) as app, AsyncClient(app.address) as client:
        yield client


async def _unavailable(error: Any) -> None:
    """Nothing else is heard of a failover."""
    assert error.code() is grpc.StatusCode.UNAVAILABLE, error
    await asyncio.sleep(0.1)


async def _shown(client: AsyncClient, session: str = "s1") -> list[str]:
    """The ids of what is shown, asked until the database answers again."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                items = (await client.assemble(ref(session), budget=ROOM)).items
            except grpc.RpcError as error:
                await _unavailable(error)
            else:
                return [item.message.id for item in items]


async def _ingest(client: AsyncClient, session: str, id: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await client.ingest(ref(session), user(id, id=id))
            except grpc.RpcError as error:
                await _unavailable(error)
            else:
                return


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_synchronous_standby_has_all_that_was_acknowledged(
    pair: tuple[postgres.Cluster, postgres.Cluster],
) -> None:
    primary, standby = pair
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
    url, done = _either(primary, standby), asyncio.Event()
    async with _client(url) as one, _client(url) as two:
        acknowledged: dict[str, list[str]] = {f"s{n}": [] for n in range(6)}

        async def write(session: str) -> None:
            while not done.is_set():
                id = f"{session}-{len(acknowledged[session])}"
                await _ingest((one, two)[len(acknowledged[session]) % 2], session, id)
                acknowledged[session].append(id)

        async def more(count: int) -> None:
            known = sum(map(len, acknowledged.values()))
            async with asyncio.timeout(PATIENCE_S):
                while sum(map(len, acknowledged.values())) < known + count:
                    await asyncio.sleep(0.02)

        writers = [asyncio.create_task(write(session)) for session in acknowledged]
        await more(60)
        await asyncio.to_thread(primary.stop, signal.SIGQUIT)
        await asyncio.to_thread(standby.promote)
        await more(60)
        done.set()
        await asyncio.gather(*writers)
        for session, ids in acknowledged.items():
            for client in (one, two):
                assert await _shown(client, session) == ids


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("then", [(), ("c",), ("c", "d"), ("c", "d", "e")])
async def test_what_an_asynchronous_standby_lacks_is_shown_by_nobody(
    pair: tuple[postgres.Cluster, postgres.Cluster], then: tuple[str, ...]
) -> None:
    """Both servers hold two messages that the standby never had. As many, more or fewer are written
    behind the failover."""
    primary, standby = pair
    url = _either(primary, standby)
    async with _client(url) as one, _client(url) as two:
        for id in ("a", "b"):
            await _ingest(one, "s1", id)
        await asyncio.sleep(1)
        await asyncio.to_thread(standby.stop)
        for id in ("x", "y"):
            await _ingest(one, "s1", id)
        assert await _shown(one) == await _shown(two) == ["a", "b", "x", "y"]
        await asyncio.to_thread(primary.stop, signal.SIGQUIT)
        await asyncio.to_thread(standby.start)
        await asyncio.to_thread(standby.promote)
        for id in then:
            await _ingest(two, "s1", id)
        assert await _shown(one) == ["a", "b", *then]
        assert await _shown(two) == ["a", "b", *then]
        await _ingest(one, "s1", "last")
        assert await _shown(two) == ["a", "b", *then, "last"]
