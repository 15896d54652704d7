"""A way to a server that a test can close, or leave open with nobody behind it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum

Way = Enum("Way", "OPEN CLOSED HUNG DEAF")
"""Deaf: what is sent arrives, and no answer comes back."""


class Gate:
    """Passes connections on to `target`."""

    def __init__(self, target: str) -> None:
        self.lead_to(target)
        self._way = Way.OPEN
        self._open: set[asyncio.StreamWriter] = set()
        self.address = ""
        self.met = 0
        """Connections that came."""

    def lead_to(self, target: str) -> None:
        """Where connections lead from now on."""
        self._host, _, port = target.rpartition(":")
        self._port = int(port)

    def turn(self, way: Way) -> None:
        """What stands there from now on. Connections that there are end, unless it hangs."""
        if way in (Way.OPEN, Way.CLOSED):
            for writer in self._open:
                writer.transport.abort()
            self._open.clear()
        self._way = way

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.met += 1
        self._open.add(writer)
        with contextlib.suppress(OSError):
            if self._way is Way.OPEN:
                there, back = await asyncio.open_connection(self._host, self._port)
                self._open.add(back)
                answers = self._pump(there, writer, back=True)
                await asyncio.gather(self._pump(reader, back), answers)
            elif self._way is Way.HUNG:
                await reader.read()
        writer.transport.abort()

    async def _pump(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, back: bool = False
    ) -> None:
        while chunk := await source.read(65_536):
            if self._way is Way.OPEN or (self._way is Way.DEAF and not back):
                target.write(chunk)
                await target.drain()
        target.transport.abort()


@asynccontextmanager
async def gate(target: str) -> AsyncIterator[Gate]:
    """A gate before a server."""
    made = Gate(target)
    server = await asyncio.start_server(made.meet, "127.0.0.1", 0)
    made.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        made.turn(Way.CLOSED)
        server.close()
