"""Tools that a host could not be told of, since the service was away when it asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ToolsListChanged

from contextengine import ContextEngineError
from contextengine.errors import SessionNotFound

from .away import PROBE_S, nobody


class Later:
    """Tells a host that its list of tools is another one once there is one: it asks once, when it
    starts, and its model would have none as long as it runs."""

    def __init__(self, pause: float = PROBE_S) -> None:
        """pause: seconds between two questions."""
        self.bus = InMemorySubscriptionBus()
        """How those hear of it who speak the protocol of 2026."""
        self._pause = pause
        self._watch: asyncio.Task[None] | None = None

    def tell(self, session: ServerSession, there: Callable[[], Awaitable[object]]) -> None:
        """Asks `there` again and again, beside the host, until it is answered."""
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._tell(session, there))

    async def _tell(self, session: ServerSession, there: Callable[[], Awaitable[object]]) -> None:
        while True:
            await asyncio.sleep(self._pause)
            try:
                await there()
            except SessionNotFound:
                pass  # it answers
            except ContextEngineError as error:
                if nobody(error):
                    continue
                return  # it will not say anything else
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await session.send_tool_list_changed()
                await self.bus.publish(ToolsListChanged())
            return

    @asynccontextmanager
    async def living(self, _: Any) -> AsyncIterator[None]:
        """The life of a server: what is asked in it ends with it."""
        try:
            yield
        finally:
            if self._watch is not None:
                self._watch.cancel()
