"""A gRPC server whose answers a test writes, and both clients against it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from contextengine import AsyncClient, Client
from contextengine.breaker import HEALTH
from contextengine.calls import ATTACH, CALLS, EXPORT, IMPORT, WATCH
from contextengine.connection import MAX_MESSAGE_BYTES

Answer = Callable[[Any, grpc.ServicerContext], Any]


class Server(grpc.GenericRpcHandler):
    """Serves every rpc with an empty reply, or with what `answers` says for its path."""

    def __init__(self, port: int = 0) -> None:
        self.answers: dict[str, Answer] = {}
        self.requests: list[Any] = []
        self.metadata: list[dict[str, str]] = []
        self.health: bytes | None = None
        """The encoded answer to the question whether it serves. None: it does not know the rpc."""
        self.gathers = True
        """Whether an Import is read to its end before it is answered."""
        self._server = grpc.server(
            ThreadPoolExecutor(8), options=[("grpc.max_receive_message_length", MAX_MESSAGE_BYTES)]
        )
        self._server.add_generic_rpc_handlers([self])
        self.address = f"127.0.0.1:{self._server.add_insecure_port(f'127.0.0.1:{port}')}"
        self._server.start()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        if handler_call_details.method == HEALTH and self.health is not None:
            return grpc.unary_unary_rpc_method_handler(lambda _, __: self.health)
        call = next(call for call in CALLS if call.path == handler_call_details.method)
        kinds = {
            EXPORT: "unary_stream",
            WATCH: "unary_stream",
            IMPORT: "stream_unary",
            ATTACH: "stream_stream",
        }
        make = getattr(grpc, f"{kinds.get(call, 'unary_unary')}_rpc_method_handler")

        def answer(request: Any, context: grpc.ServicerContext) -> Any:
            if call in (IMPORT, ATTACH):
                request = list(request) if call is IMPORT and self.gathers else request
            self.requests.append(request)
            self.metadata.append({key: str(value) for key, value in context.invocation_metadata()})
            given = self.answers.get(call.path)
            if given is not None:
                return given(request, context)
            return iter(()) if call in (EXPORT, WATCH, ATTACH) else call.response()

        return make(answer, call.request.FromString, call.response.SerializeToString)

    def stop(self) -> None:
        self._server.stop(0).wait()


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that this test alone talks to."""
    server = Server()
    yield server
    server.stop()


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest, server: Server) -> Callable[..., Any]:
    """Uses a client of either kind: `run(lambda client: client.ingest(…))` answers what the call
    answers."""

    def run_with(use: Callable[[Any], Any], **settings: Any) -> Any:
        if request.param == "sync":
            with Client(server.address, **settings) as client:
                return use(client)

        async def use_async() -> Any:
            async with AsyncClient(server.address, **settings) as client:
                return await use(client)

        return asyncio.run(use_async())

    return run_with
