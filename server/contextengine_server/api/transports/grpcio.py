"""grpcio: the default, and the reference for what the others do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import grpc

from contextengine_server.api.pipeline.certificates import CertificatePem, Certificates
from contextengine_server.api.transports.intake import aio_server
from contextengine_server.api.transports.transport import TransportOptions

MAX_METADATA = 16 * 1024
"""Bytes of metadata that a client may send. gRPC's own two limits are 8 and 16 KiB, and between
them it refuses by chance."""

MAX_PENDING = 1_000_000
"""Calls that may wait inside gRPC until the event loop takes them: more than there ever are."""


class GrpcioTransport:
    """Serves by grpc.aio."""

    def __init__(
        self, options: TransportOptions, handlers: Sequence[grpc.GenericRpcHandler]
    ) -> None:
        self._server = aio_server(list(handlers), channel_options(options))

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """As `Transport` says."""
        self._server.add_generic_rpc_handlers(list(handlers))

    def listen(self, address: str, certificates: Certificates | None) -> int:
        """As `Transport` says."""
        if certificates is None:
            return self._server.add_insecure_port(address)
        return self._server.add_secure_port(address, _credentials(certificates))

    async def start(self) -> None:
        """As `Transport` says."""
        await self._server.start()

    async def stop(self, grace_s: float) -> None:
        """As `Transport` says."""
        await self._server.stop(grace_s)


def _credentials(certificates: Certificates) -> grpc.ServerCredentials:
    served = certificates.shown

    def changed() -> grpc.ServerCertificateConfiguration | None:
        """What was read since the last connection began; None: nothing. Called by threads of
        gRPC."""
        nonlocal served
        now = certificates.shown
        if now is served:
            return None
        served = now
        return _configuration(now)

    # None says that nothing has changed, which the types of grpcio leave out.
    told = cast(Callable[[], grpc.ServerCertificateConfiguration], changed)
    asks = served.client_authority is not None
    return grpc.dynamic_ssl_server_credentials(_configuration(served), told, asks)


def _configuration(shown: CertificatePem) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(shown.key, shown.chain)], shown.client_authority
    )


def channel_options(options: TransportOptions) -> list[tuple[str, int]]:
    """How grpcio is told of them."""
    return [
        ("grpc.max_receive_message_length", options.largest_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_metadata_size", MAX_METADATA),
        ("grpc.absolute_max_metadata_size", MAX_METADATA),
        ("grpc.max_concurrent_streams", options.streams_per_connection),
        # By default a call counts among them until its last object is gone, which no client can
        # know of: what it sends then is refused bare, UNAVAILABLE.
        ("grpc.http.overload_protection", 0),
        # What is sent before we read stays below the windows of HTTP/2, 64 KiB a call; of a call
        # that is read as much comes as its message has, whatever the window.
        ("grpc.http2.bdp_probe", 0),
        # Ours is the limit that tells a caller when to come back. Beyond these, of 1,000 and 3,000
        # calls that wait to be taken, gRPC answers a bare CANCELLED, which nobody can tell from his
        # own.
        ("grpc.server.max_pending_requests", MAX_PENDING),
        ("grpc.server.max_pending_requests_hard_limit", MAX_PENDING),
        # Two servers on one port would each get half of the calls, and neither would know.
        ("grpc.so_reuseport", 0),
        ("grpc.keepalive_time_ms", int(options.keepalive_s * 1000)),
        ("grpc.keepalive_timeout_ms", int(options.keepalive_timeout_s * 1000)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", int(options.min_client_ping_s * 1000)),
    ]
