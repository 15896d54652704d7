"""What a transport does for the server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import grpc
import msgspec

from contextengine_server.api.pipeline.certificates import Certificates


class TransportOptions(msgspec.Struct, frozen=True):
    """How to serve, whichever transport does."""

    largest_bytes: int
    """The largest message that is read. Larger ones are refused by their first bytes."""
    streams_per_connection: int
    keepalive_s: float
    """A connection on which nothing comes for so long is asked whether it lives …"""
    keepalive_timeout_s: float
    """… and closed where it does not answer for so long."""
    min_client_ping_s: float


class Transport(Protocol):
    """Takes calls on one address, reads their messages when their handlers ask, and keeps their
    deadlines: the task of a call whose client is gone, or whose time has passed, is cancelled.

    Handlers are `grpc.RpcMethodHandler`s as grpc.aio takes them, and are handed a context that
    offers what grpc.aio's does.
    """

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Adds handlers that are asked where those before know nothing of a path."""

    def listen(self, address: str, certificates: Certificates | None) -> int:
        """Listens on `host:port`, `[ipv6]:port` or `unix:path`, with the certificates that are
        current when a connection begins. Answers the port. Raises OSError or RuntimeError."""

    async def start(self) -> None:
        """Begins to take calls, on the running event loop."""

    async def stop(self, grace_s: float) -> None:
        """Takes no more; calls in flight have some time, and are cancelled then."""


Make = Callable[[TransportOptions, Sequence[grpc.GenericRpcHandler]], Transport]
