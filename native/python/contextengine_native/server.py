"""Runs the handlers of grpc.aio behind the front that is written in Rust."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from inspect import isasyncgenfunction
from typing import Any, NamedTuple, cast

import grpc

from contextengine_native._front import Call, Front
from contextengine_native.context import CANCELLED, UNIMPLEMENTED, UNKNOWN, Aborted, Context

BEGUN, MESSAGE, ENDED, WRITTEN, GONE, EXPIRED, REFUSED, STOPPED = range(8)
"""Kinds of events, as the front numbers them."""

LAST_BYTES_S = 0.5
"""How long the last replies may take to go out when the server stops."""

log = logging.getLogger(__name__)


class Details(NamedTuple):
    """What a handler is looked up by, as `grpc.HandlerCallDetails`."""

    method: str
    invocation_metadata: tuple[tuple[str, str | bytes], ...]


class NativeServer:
    """Serves on the event loop that starts it; started once, stopped once.

    `largest`: bytes of the largest message that is read; `streams`: calls of a connection at once;
    `header_bytes`: how much metadata a client may send.
    """

    def __init__(
        self,
        handlers: Sequence[grpc.GenericRpcHandler],
        *,
        largest: int,
        streams: int,
        keepalive_s: float,
        keepalive_timeout_s: float,
        header_bytes: int = 16 * 1024,
    ) -> None:
        self._handlers = list(handlers)
        self._front = Front(
            largest=largest,
            streams=streams,
            header_bytes=header_bytes,
            keepalive_s=keepalive_s,
            keepalive_timeout_s=keepalive_timeout_s,
        )
        self._calls: dict[int, Context] = {}
        self._loop: asyncio.AbstractEventLoop
        self._stopped = asyncio.Event()

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Adds handlers that are asked where those before know nothing of a path."""
        self._handlers.extend(handlers)

    def listen(self, address: str) -> int:
        """Listens on `host:port` or `[ipv6]:port`; the port. Raises OSError."""
        return self._front.listen(address)

    def secure(self, chain: bytes, key: bytes, authorities: bytes | None) -> None:
        """Shows this PEM certificate from the next connection on; with authorities clients must
        show one of theirs. Raises ValueError."""
        self._front.secure(chain, key, authorities)

    async def start(self) -> None:
        """Begins to take calls."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._front.fd(), self._take)
        self._front.start()

    async def stop(self, grace_s: float) -> None:
        """Takes no more calls, gives those in flight some time, and cancels what is left."""
        self._front.stop()
        tasks = {context.task for context in self._calls.values()}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=grace_s)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=grace_s)
        try:
            async with asyncio.timeout(LAST_BYTES_S):
                await self._stopped.wait()
        except TimeoutError:
            pass  # clients that do not read, or do not let go
        self._loop.remove_reader(self._front.fd())
        self._front.close()

    def _take(self) -> None:
        for kind, what, message in self._front.take():
            if kind == BEGUN:
                self._begin(what, message)
                continue
            context = self._calls.get(what)  # type: ignore[call-overload]
            if context is None:
                if kind == STOPPED:
                    self._stopped.set()
            elif kind == MESSAGE:
                context.came(message)
            elif kind == WRITTEN:
                context.wrote()
            elif kind == ENDED:
                context.came(grpc.aio.EOF)
            else:
                context.gone(late=kind == EXPIRED)

    def _begin(self, call: Any, first: Any) -> None:
        context = Context(call, first, self._loop)
        self._calls[call.key] = context
        context.task = self._loop.create_task(self._run(call, context))

    async def _run(self, call: Call, context: Context) -> None:
        try:
            await self._handle(call, context)
        except Aborted:
            pass
        except asyncio.CancelledError:
            context.finish(CANCELLED, "the server cancelled the call")
        except Exception as error:
            if not context.over:
                log.exception("%s failed", call.path)
            context.finish(UNKNOWN, f"Unexpected {type(error)}: {error}")
        finally:
            context.over = True
            del self._calls[call.key]

    async def _handle(self, call: Call, context: Context) -> None:
        handler = self._handler(call)
        if handler is None:
            context.finish(UNIMPLEMENTED, "Method not found!")
            return
        context.deserialize = handler.request_deserializer
        context.serialize = handler.response_serializer
        if handler.request_streaming:
            request: Any = context.requests()
        else:
            request = await context.read()
            if request is grpc.aio.EOF:
                context.finish(UNIMPLEMENTED, "the call ended without a request")
                return
        if not handler.response_streaming:
            work: Any = handler.stream_unary if handler.request_streaming else handler.unary_unary
            context.reply(await work(request, context))
            return
        work = handler.stream_stream if handler.request_streaming else handler.unary_stream
        if isasyncgenfunction(work):
            async for reply in work(request, context):
                await context.write(reply)
        else:
            await work(request, context)
        context.finish(0)

    def _handler(self, call: Call) -> Any:
        details = Details(call.path, call.metadata())
        for handlers in self._handlers:
            if (handler := handlers.service(cast(grpc.HandlerCallDetails, details))) is not None:
                return handler
        return None
