"""Three servers over one PostgreSQL give out a tenant's quota once, and not three times."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest

from contextengine import AsyncClient, ContextEngineError
from contextengine.messages import user
from contextengine_server.app import running
from contextengine_server.config.load import load_settings
from contextengine_server.health import servers
from contextengine_server.plugins.engines import installed_engines
from tests import postgres
from tests.integration.harness import PATIENCE_S, ref
from tests.integration.shares.test_waits_and_streams import NEVER

QUOTA = 5
"""Reads that wait for a revision, of one tenant: no multiple of three."""


class Fleet:
    """Servers over one database, and a client of each."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stacks: list[AsyncExitStack] = []
        self.clients: list[AsyncClient] = []

    async def add(self) -> None:
        flags = {
            "server.address": "127.0.0.1:0",
            "server.quotas": [{"tenant": "*", "waits": QUOTA}],
            "store.url": self._url,
        }
        stack = AsyncExitStack()
        app = await stack.enter_async_context(
            running(load_settings(None, flags, {}, installed_engines()))
        )
        self.clients.append(
            await stack.enter_async_context(AsyncClient(app.address, retry_for=0, fallback=False))
        )
        self._stacks.append(stack)

    async def end(self) -> None:
        """Ends the one that was added last."""
        self.clients.pop()
        await self._stacks.pop().aclose()

    async def admitted(self) -> list[int]:
        """How many reads each server lets wait, where more than the quota want to at each."""
        wanted = [client for client in self.clients for _ in range(QUOTA + 2)]
        waiting = [asyncio.create_task(_waits(client)) for client in wanted]
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    held = [await _held(client) for client in self.clients]
                    left = sum(not task.done() for task in waiting)
                    if left == sum(held):  # the others were refused
                        return held
                    await asyncio.sleep(0.02)
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            async with asyncio.timeout(PATIENCE_S):
                for client in self.clients:
                    while await _held(client):
                        await asyncio.sleep(0.02)

    async def settle(self, expected: Sequence[int]) -> list[int]:
        """What is admitted, once every server knows of the others."""
        async with asyncio.timeout(PATIENCE_S):
            while sorted(found := await self.admitted(), reverse=True) != list(expected):
                await asyncio.sleep(0.05)
        return found


async def _waits(client: AsyncClient) -> None:
    with suppress(ContextEngineError):
        await client.get_status(ref(), at_least_revision=NEVER, timeout=120)


async def _held(client: AsyncClient) -> int:
    reply = await client.engines.list_quotas(tenant="default")
    assert reply.tenants[0].in_force.waits == QUOTA, "what the owner granted is shown whole"
    return reply.tenants[0].usage.waits


@pytest.fixture
async def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Fleet]:
    postgres.require()
    monkeypatch.setattr(servers, "BEAT_S", 0.1)
    made = Fleet(postgres.place(tmp_path))
    await made.add()
    yield made
    while made.clients:
        await made.end()


async def test_a_quota_is_parted_among_the_servers_that_are_there(fleet: Fleet) -> None:
    await fleet.clients[0].ingest(ref(), user("hello"))
    assert await fleet.admitted() == [5]
    await fleet.add()
    await fleet.add()
    await fleet.settle([2, 2, 1])
    await fleet.end()
    await fleet.settle([3, 2])
    await fleet.end()
    await fleet.settle([5])
