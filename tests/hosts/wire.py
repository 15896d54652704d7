"""What an agent may wait for the service, counted by what comes over the wire: a service that
passes calls on to the one behind it, or hangs. Where that one is dead, each call is refused at
once. For hosts that are programs of their own; those within this process are counted in
waits.py."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio

from contextengine.breaker import HEALTH

_LARGE = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
_SOON = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 100)]
"""A service that is back is found by whoever asks next, as if nothing stood before it."""
_OWN = ("grpc-", "content-type", "user-agent", "te", ":")
"""Metadata that gRPC itself makes for each call."""


_ROUNDED = 1.02
"""By how much at most what is sent of a deadline is longer than it: gRPC rounds it up."""


@dataclass
class Heard:
    """The calls that came since it was last asked."""

    calls: list[tuple[str, float]] = field(default_factory=list)
    """The rpc, and for how many seconds its caller waits."""
    asked: int = 0
    """Questions whether the service is back, which callers wait for a moment each."""
    seconds: float = 0.0
    """How long it has listened."""


class Wire(grpc.GenericRpcHandler):
    """What stands before the service."""

    def __init__(self, target: str) -> None:
        self.target, self.hangs = target, False
        """hangs: calls come, and are not answered."""
        self.slow: dict[str, float] = {}
        """Seconds that calls of an rpc wait before they are passed on."""
        self.address = ""
        self._heard, self._since = Heard(), time.monotonic()
        self._ways: dict[str, grpc.aio.Channel] = {}

    def taken(self) -> Heard:
        """What came, and listens anew."""
        heard, now = self._heard, time.monotonic()
        heard.seconds = now - self._since
        self._heard, self._since = Heard(), now
        return heard

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        """How a call is met, whatever it is."""

        async def meet(
            requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, bytes]
        ) -> AsyncIterator[bytes]:
            left = context.time_remaining()
            if details.method == HEALTH:
                self._heard.asked += 1
            else:
                bound = math.inf if left is None else left / _ROUNDED
                self._heard.calls.append((details.method.rpartition("/")[2], bound))
            if self.hangs:
                await asyncio.Event().wait()
            await asyncio.sleep(self.slow.get(details.method.rpartition("/")[2], 0))
            if self.target not in self._ways:
                self._ways[self.target] = grpc.aio.insecure_channel(
                    self.target, options=_LARGE + _SOON
                )
            way: Any = self._ways[self.target]
            kept = [
                (name, value)
                for name, value in context.invocation_metadata() or ()
                if not name.startswith(_OWN)
            ]
            call = way.stream_stream(details.method)(requests, timeout=left, metadata=kept)
            try:
                async for reply in call:
                    yield reply
            except grpc.aio.AioRpcError as error:
                told = tuple(error.trailing_metadata())
                await context.abort(error.code(), error.details() or "", told)

        return grpc.stream_stream_rpc_method_handler(meet)


@asynccontextmanager
async def wire(target: str) -> AsyncIterator[Wire]:
    """A wire to a service."""
    made = Wire(target)
    server = grpc.aio.server(options=_LARGE)
    server.add_generic_rpc_handlers([made])
    made.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    try:
        yield made
    finally:
        await server.stop(0)
        for way in made._ways.values():
            await way.close()
