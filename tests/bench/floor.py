"""The floor: a bare grpc.aio handler on uvloop that answers each path with the bytes of a file,
under our server's own options.

python floor.py ADDRESS DIRECTORY      /any.Service/NAME is answered with the content of
DIRECTORY/NAME
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import grpc
import uvloop

from contextengine_server.api.pipeline.server import ServerOptions, transport_options
from contextengine_server.api.transports.grpcio import channel_options

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class Floor(grpc.GenericRpcHandler):
    """Files as replies; a file is read when its path is first called."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._handlers: dict[str, Handler] = {}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Handler | None:
        path = handler_call_details.method
        handler = self._handlers.get(path)
        if handler is None:
            file = self._directory / path.rpartition("/")[2]
            if not file.is_file():
                return None
            handler = self._handlers[path] = _answering(file.read_bytes())
        return handler


def _answering(reply: bytes) -> Handler:
    async def handle(request: bytes, context: object) -> bytes:
        return reply

    answer: Callable[..., Any] = handle
    return grpc.unary_unary_rpc_method_handler(answer)


async def main(address: str, directory: Path) -> None:
    """Serves until SIGTERM."""
    server = grpc.aio.server(
        handlers=[Floor(directory)],
        options=channel_options(transport_options(ServerOptions(address=address))),
    )
    server.add_insecure_port(address)
    await server.start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    await server.stop(0.2)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], Path(sys.argv[2])))
