"""How tests of what is done now and then wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from contextengine_server.session.sweeper import Sweeper


@asynccontextmanager
async def running(sweeper: Sweeper) -> AsyncIterator[None]:
    sweeper.start()
    try:
        yield
    finally:
        await sweeper.stop()


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await holds():
            await asyncio.sleep(0.005)
