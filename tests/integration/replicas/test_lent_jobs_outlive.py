"""Servers over one PostgreSQL that are killed while a harness of one does a job for another: its
result counts once, and nobody waits for ever."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from contextengine import AsyncClient
from contextengine_proto.v1 import runtime_pb2_grpc
from tests import postgres
from tests.integration.harness import PATIENCE_S, budget, ref
from tests.integration.summarize.lending import Harness
from tests.integration.summarize.provider import GOOD
from tests.soak.killing import Child

from .test_paused import MESSAGES, compacted, summaries

LEASE_S = 5
SETTINGS = {
    "CONTEXTENGINE_SUMMARIZER__ORDER": json.dumps(["runtime", "extractive"]),
    "CONTEXTENGINE_SUMMARIZER__REMAKE": "false",
    "CONTEXTENGINE_SUMMARIZER__RUNTIME__LEASE": f"{LEASE_S}s",
    "CONTEXTENGINE_ENGINE__DAG__FRESH_TAIL_TURNS": "1",
}


class Servers:
    """Servers as processes of their own, a client of each and its harnesses."""

    def __init__(self, stack: AsyncExitStack, directory: Path, url: str) -> None:
        self._stack = stack
        self.children = [Child(directory / name, url, **SETTINGS) for name in ("a", "b", "c")]
        self.clients: list[AsyncClient] = []

    async def start(self) -> None:
        for child in self.children:
            self._stack.push_async_callback(child.end)
        await asyncio.gather(*(child.start() for child in self.children))
        for child in self.children:
            client = AsyncClient(f"127.0.0.1:{child.port}", retry_for=0, fallback=False)
            self.clients.append(await self._stack.enter_async_context(client))

    @asynccontextmanager
    async def attached(self, number: int) -> AsyncIterator[Harness]:
        """A harness that is attached to one of them, of which all know."""
        async with grpc.aio.insecure_channel(f"127.0.0.1:{self.children[number].port}") as channel:
            stub: Any = runtime_pb2_grpc.RuntimeStub(channel)
            harness = Harness(stub.Attach())
            await harness.say(hello={"host_id": "harness"})
            assert (await harness.hears()).welcome.stream_id
            yield harness
            harness.stream.cancel()

    async def known(self, *numbers: int) -> None:
        """Waits until these servers know that a harness is attached somewhere."""
        async with asyncio.timeout(PATIENCE_S):
            for number in numbers:
                while not await _attached(self.clients[number]):
                    await asyncio.sleep(0.05)


async def _attached(client: AsyncClient) -> int:
    return (await client.get_status(ref())).summarizers.attached_harness_count


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[Servers]:
    postgres.require()
    async with AsyncExitStack() as stack:
        made = Servers(stack, tmp_path, postgres.place(tmp_path))
        await made.start()
        await made.clients[0].ingest_batch(ref(), MESSAGES)
        yield made


@pytest.mark.timeout(0)
async def test_a_job_of_a_server_that_died_is_answered_at_another(servers: Servers) -> None:
    asking, _, third = servers.clients
    async with servers.attached(1) as harness:
        await servers.known(0)
        compacting = asyncio.create_task(compacted(asking))
        job = await harness.job()
        await servers.children[1].kill()
        async with servers.attached(2) as again:
            await again.does(job)
            assert (await compacting).compacted
    assert await summaries(third) == [GOOD]


@pytest.mark.timeout(0)
async def test_who_died_with_a_job_is_not_waited_for(servers: Servers) -> None:
    asking, _, third = servers.clients
    async with servers.attached(1) as harness:
        await servers.known(0)
        compacting = asyncio.create_task(compacted(asking))
        await harness.job()
        await servers.children[1].kill()
        async with asyncio.timeout(PATIENCE_S):
            assert (await compacting).compacted
    (summary,) = await summaries(third)
    assert summary != GOOD
    assert await _attached(asking) == await _attached(third) == 0


@pytest.mark.timeout(0)
async def test_a_result_for_a_server_that_died_is_taken_by_who_goes_on(servers: Servers) -> None:
    asking, _, third = servers.clients
    async with servers.attached(1) as harness:
        await servers.known(0, 2)
        compacting = asyncio.create_task(compacted(asking))
        job = await harness.job()
        await servers.children[0].kill()
        await asyncio.gather(compacting, return_exceptions=True)
        await harness.does(job)
        async with asyncio.timeout(2 * PATIENCE_S):
            done = await third.compact(
                ref(), budget=budget(4_000), force=True, timeout=2 * PATIENCE_S
            )
        assert done.compacted
        await harness.was_told_nothing()  # nobody asks for the same again
    assert await summaries(third) == [GOOD]
