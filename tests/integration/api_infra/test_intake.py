"""Calls are taken from gRPC some at a time: what stands in its one line waits for turns of the
loop, whosever it is."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import grpc
import pytest
from grpc._cython import cygrpc  # type: ignore[attr-defined]

from contextengine_server.api.transports import intake

CALLS = 16


class Answering(grpc.GenericRpcHandler):
    """Answers every call with what it says, and notes in which turn of the loop it came."""

    def __init__(self) -> None:
        self.turn = 0
        self.came: list[tuple[bytes, int]] = []

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        async def answer(request: bytes, _: Any) -> bytes:
            self.came.append((request, self.turn))
            return request

        return grpc.unary_unary_rpc_method_handler(answer)

    def count(self) -> None:
        """A turn in which the loop has so much to do that gRPC's threads wait for it."""
        self.turn += 1
        time.sleep(0.003)
        asyncio.get_running_loop().call_soon(self.count)


async def turns_of_calls() -> int:
    """Sends calls while the loop is held, and answers how many turns lay between the first and the
    last. Their order is gRPC's: several threads of it hand over calls that are sent at once."""
    answering = Answering()
    server = intake.aio_server([answering], [("grpc.server.max_pending_requests", 1_000)])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        call: Any = channel.unary_unary("/any/Call")
        await asyncio.to_thread(call, b"first")
        answering.came.clear()
        sent = [call.future(b"%d" % number) for number in range(CALLS)]
        time.sleep(0.5)  # noqa: ASYNC251 - holds the loop until gRPC has them all
        answering.count()
        replies = await asyncio.to_thread(lambda: [one.result(30) for one in sent])
    await server.stop(1)
    assert replies == [b"%d" % number for number in range(CALLS)]
    assert {request for request, _ in answering.came} == {*replies}
    return answering.came[-1][1] - answering.came[0][1]


async def test_calls_that_stand_in_line_are_taken_in_one_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What the machine does beside only adds turns.
    assert min([await turns_of_calls() for _ in range(3)]) <= 1
    monkeypatch.setattr(intake, "AHEAD", 1)
    assert await turns_of_calls() > 2 * CALLS


async def test_a_release_that_asks_otherwise_serves_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Another:
        """A server of gRPC without the method."""

    monkeypatch.setattr(cygrpc, "AioServer", Another)
    served: list[Any] = []
    monkeypatch.setattr(grpc.aio, "server", lambda **given: served.append(given))
    intake.aio_server([], [])
    assert served == [{"handlers": [], "options": []}]
