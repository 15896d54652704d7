"""A server whose summaries are asked of services on loopback, and what became of each."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contextengine import types as t

from ..harness import Clock, House, house
from .lending import compacting
from .provider import Provider, Reply, answer, provider

ONE_STEP = {"engine.dag.freshTailTurns": 1}


@dataclass
class Served:
    """A running server, and its services by name."""

    at: House
    clock: Clock
    services: dict[str, Provider]

    def replying(self, **replies: Reply) -> None:
        """What each service says from now on, and forgets what it was asked. One that is not named
        gives a good answer."""
        for name, made in self.services.items():
            made.replies[:] = [replies.get(name, answer())]
            made.requests.clear()

    def asked(self) -> dict[str, int]:
        """How often each service was asked."""
        return {name: len(made.requests) for name, made in self.services.items() if made.requests}

    async def assign(self, scope: t.SessionRef, **options: Any) -> None:
        """An operator's choice of the dag's options for a session, or an agent."""
        await self.at.client.engines.assign(
            scope=scope, engine_id="dag", options_json=json.dumps(options).encode()
        )

    async def compacted(
        self, session: t.SessionRef, client: Any = None, **more: Any
    ) -> t.SessionRef:
        """After a compaction."""
        async with compacting(self.at, session, client, **more) as done:
            pass
        assert done.result().summaries
        return session

    async def guards(self, session: t.SessionRef, client: Any = None) -> t.SummarizerStatus:
        """The tenant's guards, as GetStatus shows them for a session."""
        status: t.GetStatusResponse = await (client or self.at.client).get_status(session=session)
        return status.summarizers


@asynccontextmanager
async def served(
    directory: Path, *names: str, window: int = 128_000, **settings: Any
) -> AsyncIterator[Served]:
    """A server with services of these names, that lives by a clock of its own."""
    clock = Clock()
    async with AsyncExitStack() as stack:
        services = {name: await stack.enter_async_context(provider(answer())) for name in names}
        endpoints = [
            {
                "name": name,
                "base_url": made.base_url,
                "model": f"{name}-small",
                "retries": 0,
                "timeout": 60,
                "window": window,
            }
            for name, made in services.items()
        ]
        # What an earlier test left behind is not made again in the middle of a later one.
        settings = {
            "summarizer.endpoints": endpoints,
            "summarizer.remake": False,
            **ONE_STEP,
            **settings,
        }
        at = await stack.enter_async_context(house(directory, clock=clock, **settings))
        yield Served(at, clock, services)
