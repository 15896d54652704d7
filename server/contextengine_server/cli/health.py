"""`health`: one call of grpc.health.v1, for what restarts or routes by it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from contextengine_server.cli.connection import Where, dialled, settings_of
from contextengine_server.cli.output import CommandFailed


def check_health(
    address: str,
    service: str,
    tls: bool,
    authority: Path | None,
    config: Path | None,
    timeout: float,
) -> str:
    """The state that the server reports, SERVING or another. Raises CommandFailed where none
    answers in time."""
    # What gRPC itself would log of a connection that fails, our own message says.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    import grpc
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    target = dialled(address or settings_of(Where(config=config)).server.address)
    if tls or authority is not None:
        try:
            roots = authority.read_bytes() if authority is not None else None
        except OSError as error:
            raise CommandFailed(f"--ca {authority}: cannot be read: {error.strerror}", 2) from error
        channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(roots))
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
                " there, and does it speak TLS (--tls, --ca)?"
            ) from error
    return health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
