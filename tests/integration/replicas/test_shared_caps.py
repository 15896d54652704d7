"""Two servers over one PostgreSQL hold a tenant to what it may take of the disk, once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, ClassVar

import pytest

from contextengine import AsyncClient, ContextEngineError
from contextengine.messages import user
from contextengine_server.app import App, running
from contextengine_server.config.load import load_settings
from contextengine_server.context.scope import Scope
from contextengine_server.health import servers
from contextengine_server.health.quota import Quotas
from contextengine_server.plugins.engines import installed_engines
from contextengine_server.wiring import limits
from tests import postgres
from tests.integration.harness import PATIENCE_S, ref

CAP = 400_000
SCOPES = [Scope("default", "agent", f"s{number}") for number in range(2)]
TEXT = "word " * 800
"""4 KB: a hundredth of the cap."""


class Measurer(Quotas):
    """One whose work can be waited for: how far a cap is passed is then no matter of time."""

    made: ClassVar[list[Measurer]]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.made.append(self)

    def knows_of_two(self) -> bool:
        return self._servers() == 2

    def is_done(self) -> bool:
        """Whether nothing is being measured, or due."""
        return not self._due and not self._meanwhile


@pytest.fixture
async def apps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sequence[App]]:
    postgres.require()
    monkeypatch.setattr(servers, "BEAT_S", 0.1)
    monkeypatch.setattr(Measurer, "made", [], raising=False)
    monkeypatch.setattr(limits, "Quotas", Measurer)
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


async def all_of(is_so: Callable[[Measurer], bool]) -> None:
    """Waits until it is so of both servers' measuring."""
    while not all(map(is_so, Measurer.made)):
        await asyncio.sleep(0.01)


async def test_two_servers_pass_a_cap_no_further_than_one(apps: Sequence[App]) -> None:
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(AsyncClient(app.address)) for app in apps]

        async def took(number: int, message: str) -> bool:
            """Whether a server takes a message; where it does not, the tenant has its cap."""
            try:
                await clients[number].ingest(ref(f"s{number}"), user(TEXT, id=message))
            except ContextEngineError as error:
                if error.metadata.get("field") != "retention.caps":
                    raise
                return False
            return True

        async def fill(number: int, each: int) -> bool:
            """Whether a server takes the next so many."""
            for _ in range(each):
                await all_of(Measurer.is_done)
                if not await took(number, f"m{taken[number]}"):
                    # Not its part alone is full: all of it is.
                    assert await stored(apps[number]) > CAP
                    return False
                taken[number] += 1
            return True

        taken, take = [0, 0], [True, True]
        async with asyncio.timeout(PATIENCE_S):
            await all_of(Measurer.knows_of_two)
            while any(take):
                # One of them has twice as much to write as the other.
                take[:] = await asyncio.gather(fill(0, 2), fill(1, 1))
        used = await stored(apps[0])
        assert CAP < used < CAP * 1.15
        assert min(taken) > 15, "either had its part"

        # What one erases is room at the other.
        await clients[0].sessions.delete(ref("s0"))
        async with asyncio.timeout(PATIENCE_S):
            while not await took(1, "more"):
                await asyncio.sleep(0.1)
