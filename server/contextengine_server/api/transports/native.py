"""The transport of the package contextengine-native: HTTP/2 in Rust, on a thread of its own."""

from __future__ import annotations

from collections.abc import Sequence

import grpc

from contextengine_server.api.pipeline.auth import ConfigurationError
from contextengine_server.api.pipeline.certificates import CertificatePem, Certificates
from contextengine_server.api.transports.transport import TransportOptions


class NativeTransport:
    """Serves by contextengine-native. Raises ConfigurationError where it is not installed."""

    def __init__(
        self, options: TransportOptions, handlers: Sequence[grpc.GenericRpcHandler]
    ) -> None:
        try:
            from contextengine_native import NativeServer
        except ImportError as error:
            raise ConfigurationError(
                "server.transport: native needs the package contextengine-native, which is not"
                f" installed here ({error}): `make native` builds it, and `grpcio` needs nothing"
            ) from error
        self._server = NativeServer(
            handlers,
            largest=options.largest_bytes,
            streams=options.streams_per_connection,
            keepalive_s=options.keepalive_s,
            keepalive_timeout_s=options.keepalive_timeout_s,
        )

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """As `Transport` says."""
        self._server.add_generic_rpc_handlers(handlers)

    def listen(self, address: str, certificates: Certificates | None) -> int:
        """As `Transport` says. Raises ConfigurationError for a path."""
        if address.startswith("unix:"):
            # Clients that are built on gRPC's core name such a server by its path, as %2Ftmp%2Fs,
            # which is no name of a host to HTTP/2 in Rust: it would refuse each of their calls.
            raise ConfigurationError(
                f"cannot listen on {address}: the transport native serves no Unix sockets; give a"
                " host and port, or set server.transport to grpcio"
            )
        if certificates is not None:
            self._show(certificates.shown)
            certificates.on_change(self._show)
        return self._server.listen(address)

    async def start(self) -> None:
        """As `Transport` says."""
        await self._server.start()

    async def stop(self, grace_s: float) -> None:
        """As `Transport` says."""
        await self._server.stop(grace_s)

    def _show(self, shown: CertificatePem) -> None:
        try:
            self._server.secure(shown.chain, shown.key, shown.client_authority)
        except ValueError as error:
            raise ConfigurationError(f"server.tls: {error}") from error
