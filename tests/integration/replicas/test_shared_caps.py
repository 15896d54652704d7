"""Two servers over one PostgreSQL hold a tenant to what it may take of the disk, once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from contextengine import AsyncClient, ContextEngineError
from contextengine.messages import user
from contextengine_server.app import App, running
from contextengine_server.config.load import load_settings
from contextengine_server.context.scope import Scope
from contextengine_server.health import servers
from contextengine_server.plugins.engines import installed_engines
from tests import postgres
from tests.integration.harness import PATIENCE_S, ref

CAP = 400_000
SCOPES = [Scope("default", "agent", f"s{number}") for number in range(2)]
TEXT = "word " * 800
"""4 KB: a hundredth of the cap."""


@pytest.fixture
async def apps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sequence[App]]:
    postgres.require()
    monkeypatch.setattr(servers, "BEAT_S", 0.1)
    flags = {
        "server.address": "127.0.0.1:0",
        "store.url": postgres.place(tmp_path),
        "retention.caps": [{"tenant": "*", "max_bytes": CAP}],
    }
    async with AsyncExitStack() as stack:
        settings = load_settings(None, flags, {}, installed_engines())
        yield [await stack.enter_async_context(running(settings)) for _ in range(2)]


async def stored(app: App) -> int:
    return sum([await app.store.size(scope) for scope in SCOPES])


async def test_two_servers_pass_a_cap_no_further_than_one(apps: Sequence[App]) -> None:
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(AsyncClient(app.address)) for app in apps]
        await asyncio.sleep(0.5)  # each has heard of the other

        async def fill(number: int) -> int:
            """Writes until it is refused; how many messages were taken."""
            for taken in range(1_000):
                try:
                    await clients[number].ingest(ref(f"s{number}"), user(TEXT, id=f"m{taken}"))
                except ContextEngineError as error:
                    if error.metadata.get("field") != "retention.caps":
                        raise
                    return taken
                await asyncio.sleep(0.02)
            raise AssertionError("nothing was refused")

        async with asyncio.timeout(PATIENCE_S):
            taken = await asyncio.gather(fill(0), fill(1))
        used = await stored(apps[0])
        assert CAP < used < CAP * 1.15
        assert min(taken) > 30, "either had its part"

        # What one erases is room at the other.
        await clients[0].sessions.delete(ref("s0"))
        async with asyncio.timeout(PATIENCE_S):
            while not await took(clients[1]):
                await asyncio.sleep(0.1)


async def took(client: AsyncClient) -> bool:
    """Whether one more message is taken."""
    try:
        await client.ingest(ref("s1"), user(TEXT, id="more"))
    except ContextEngineError as error:
        if error.metadata.get("field") != "retention.caps":
            raise
        return False
    return True
