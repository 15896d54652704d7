"""`health`: one call of grpc.health.v1, for what restarts or routes by it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contextengine_server.cli.connection import Where, dialled, settings_of
from contextengine_server.cli.output import CommandFailed

if TYPE_CHECKING:
    import grpc


@dataclass(frozen=True)
class Trust:
    """How the connection is secured, if at all."""

    tls: bool
    authority: Path | None
    """PEM of who signs the server's certificate. None: the system's authorities."""
    server_name: str
    """The name to look for in the certificate. Empty: the address."""
    certificate: Path | None
    """PEM of what is shown to a server that asks for a certificate."""
    key: Path | None

    def credentials(self) -> grpc.ChannelCredentials | None:
        """None: the connection is plain. Raises CommandFailed."""
        if (self.certificate is None) is not (self.key is None):
            raise CommandFailed("--cert and --key belong together: give both", 2)
        if not (self.tls or self.authority or self.server_name or self.certificate):
            return None
        import grpc

        return grpc.ssl_channel_credentials(
            root_certificates=_read("--ca", self.authority),
            private_key=_read("--key", self.key),
            certificate_chain=_read("--cert", self.certificate),
        )


def check_health(
    address: str, service: str, trust: Trust, config: Path | None, timeout: float
) -> str:
    """The state that the server reports, SERVING or another. Raises CommandFailed where none
    answers in time."""
    # What gRPC itself would log of a connection that fails, our own message says.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    import grpc
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    target = dialled(address or settings_of(Where(config=config)).server.address)
    credentials = trust.credentials()
    if credentials is not None:
        named = [("grpc.ssl_target_name_override", trust.server_name)] if trust.server_name else []
        channel = grpc.secure_channel(target, credentials, named)
    else:
        channel = grpc.insecure_channel(target)
    with channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        try:
            answer = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=timeout)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                raise CommandFailed(
                    f"--service {service}: the server at {target} has no such service; leave it out"
                    " for the server as a whole",
                    2,
                ) from error
            raise CommandFailed(
                f"the server at {target} does not answer ({error.code().name}): is it running"
                " there, and does it speak TLS (--tls, --ca, --server-name), and ask for a"
                " certificate (--cert, --key)?"
            ) from error
    return health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)


def _read(option: str, file: Path | None) -> bytes | None:
    try:
        return None if file is None else file.read_bytes()
    except OSError as error:
        raise CommandFailed(f"{option} {file}: cannot be read: {error.strerror}", 2) from error
