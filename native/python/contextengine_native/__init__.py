"""A transport for the contextengine server that is written in Rust: `server.transport: native`.

It takes the handlers that grpc.aio takes, and its calls look like those of grpc.aio to them.
"""

from contextengine_native.server import NativeServer

__all__ = ["NativeServer"]
