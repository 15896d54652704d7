"""How long a model waits for a service that does not answer at all, and for one that works."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from contextengine import AsyncClient, ContextEngineError

from .away import GLANCE_S, Away

Answer = TypeVar("Answer")

PATIENCE_S = 2.0
"""Seconds that a service costs which does not answer: half of them until it is asked whether it
does, half for that. One that is known to be away is asked first, at a glance."""


class Patience:
    """Calls of a client that take as long as they take, as long as the service answers at all."""

    def __init__(self, client: AsyncClient, away: Away) -> None:
        self._client, self._away = client, away

    async def answered(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """What a call answers. Raises ContextEngineError, also where nobody answers meanwhile."""
        if self._away.known:
            await self._asked(GLANCE_S)
        running = asyncio.ensure_future(call())
        try:
            while not (await asyncio.wait({running}, timeout=PATIENCE_S / 2))[0]:
                await self._asked(PATIENCE_S / 2)
            return await running
        finally:
            running.cancel()

    async def _asked(self, seconds: float) -> None:
        began = time.monotonic()
        try:
            await self._client.engines.list(timeout=seconds)
        except ContextEngineError as error:
            self._away.failed(error, time.monotonic() - began)
            raise
        self._away.answered()
