"""What asyncio's client is told of a call that ended while it still wrote."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator
from typing import Any

import grpc
import grpc.aio
import pytest

from contextengine.answers import Replies, answer_of

REFUSED = (grpc.StatusCode.RESOURCE_EXHAUSTED, "never fits")
OVERWRITTEN = (grpc.StatusCode.INTERNAL, "Internal error from Core")
OK = (grpc.StatusCode.OK, "")


class Call:
    """A call that ends with one status after another, as gRPC's do where a write fails; it tells of
    the first alone, and before it goes on."""

    def __init__(self, *statuses: tuple[grpc.StatusCode, str]) -> None:
        self._statuses = statuses
        self._status = OK
        self._told: list[Callable[[Any], object]] = []

    def add_done_callback(self, told: Callable[[Any], object]) -> None:
        self._told.append(told)

    def __await__(self) -> Generator[Any, None, str]:
        yield from ()
        for status in self._statuses:
            self._status = status
            while self._told:
                self._told.pop()(self)
        code, details = self._status
        if code is not grpc.StatusCode.OK:
            empty = grpc.aio.Metadata()
            raise grpc.aio.AioRpcError(code, empty, empty, details=details)
        return "a reply"

    async def code(self) -> grpc.StatusCode:
        return self._status[0]

    async def details(self) -> str:
        return self._status[1]

    async def debug_error_string(self) -> str:
        return ""

    async def initial_metadata(self) -> grpc.aio.Metadata:
        return grpc.aio.Metadata()

    async def trailing_metadata(self) -> grpc.aio.Metadata:
        return grpc.aio.Metadata(("of", self._status[1]))


@pytest.mark.parametrize(
    ("statuses", "told"),
    [
        ([REFUSED], REFUSED),
        ([OVERWRITTEN], OVERWRITTEN),
        ([REFUSED, OVERWRITTEN], REFUSED),
        ([OVERWRITTEN, REFUSED], REFUSED),
        ([OK, OVERWRITTEN], OVERWRITTEN),
    ],
)
async def test_what_the_server_said_counts_whatever_became_of_a_write(
    statuses: list[tuple[grpc.StatusCode, str]], told: tuple[grpc.StatusCode, str]
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await answer_of(Call(*statuses))
    assert (caught.value.code(), caught.value.details()) == told


async def test_metadata_of_what_was_said_first_is_kept() -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await answer_of(Call(REFUSED, OVERWRITTEN))
    assert caught.value.trailing_metadata() == grpc.aio.Metadata(("of", "never fits"))


async def test_a_reply_is_a_reply() -> None:
    assert await answer_of(Call(OK)) == "a reply"


class Closed(grpc.GenericRpcHandler):
    """A service that refuses each call before it has read a request."""

    def service(self, _: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any]:
        async def refuse(_: Any, context: Any) -> AsyncIterator[bytes]:
            await context.abort(*REFUSED)
            yield b""

        return grpc.stream_stream_rpc_method_handler(refuse)


async def test_a_stream_that_is_refused_while_its_client_writes_says_why() -> None:
    async def requests() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield b"a request"

    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Closed(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        invoke: Any = channel.stream_stream("/a/Service")
        for _ in range(50):
            replies = Replies(invoke(requests()))
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await anext(replies)
            assert (caught.value.code(), caught.value.details()) == REFUSED
    await server.stop(None)
