"""A sink for spans: takes OTLP over gRPC and throws it away.

python sink.py ADDRESS
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import grpc

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class Sink(grpc.GenericRpcHandler):
    """Answers every export with an empty reply, which means that all of it was taken."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Handler:
        async def take(request: bytes, context: object) -> bytes:
            return b""

        answer: Callable[..., Any] = take
        return grpc.unary_unary_rpc_method_handler(answer)


async def main(address: str) -> None:
    """Serves until SIGTERM."""
    server = grpc.aio.server(handlers=[Sink()], options=[("grpc.max_receive_message_length", -1)])
    server.add_insecure_port(address)
    await server.start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    await server.stop(0.2)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
