"""How a server comes to listen on its address, and why it cannot."""

from __future__ import annotations

import errno
import os
import socket
import stat

from contextengine_server.api.pipeline.auth import AddressInUse, ConfigurationError, split_address
from contextengine_server.api.pipeline.certificates import Certificates
from contextengine_server.api.transports.transport import Transport


def bind(transport: Transport, address: str, certificates: Certificates | None) -> int:
    """Has a transport listen there; the port. Raises ConfigurationError."""
    if address.startswith("unix:"):
        _check_socket_path(address)
    try:
        return transport.listen(address, certificates)
    except (RuntimeError, OSError) as error:
        raise cannot_listen(address) from error


def _check_socket_path(address: str) -> None:
    """Transports replace a socket file without asking whose it is: a server that still listens
    there must not lose it."""
    path = address.removeprefix("unix:")
    path = path.removeprefix("//") if path.startswith("//") else path
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            raise ConfigurationError(
                f"cannot listen on {address}: the path exists and is not a socket"
            )
    except OSError:
        return  # not there, or binding will say why not
    with socket.socket(socket.AF_UNIX) as probe:
        if probe.connect_ex(path) == 0:
            raise ConfigurationError(f"cannot listen on {address}: another process listens there")


def cannot_listen(address: str, setting: str = "") -> ConfigurationError:
    """The error of whoever could not listen on an address that `setting` names."""
    why = _why_unbound(address)
    kind = AddressInUse if why == _IN_USE else ConfigurationError
    return kind(f"{setting}{': ' if setting else ''}cannot listen on {address}: {why}")


_IN_USE = "the port is in use by another process; stop that one or choose another port"


def _why_unbound(address: str) -> str:
    """What the operating system says to the same address, since gRPC keeps it to itself."""
    try:
        if address.startswith("unix:"):
            with socket.socket(socket.AF_UNIX) as probe:
                probe.bind(address.removeprefix("unix:").removeprefix("//"))
            return "it could not be bound"
        host, port = split_address(address)
        family, kind, protocol, _, target = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(target)
            probe.listen(1)
    except socket.gaierror as error:
        return f"the host is not known: {error.strerror}"
    except OSError as error:
        match error.errno:
            case errno.EADDRINUSE:
                return _IN_USE
            case errno.EACCES:
                return (
                    "not permitted; ports below 1024 and other users' directories need more rights"
                )
            case errno.EADDRNOTAVAIL:
                return "no interface of this machine has that address"
            case _:
                return error.strerror or str(error)
    return "it could not be bound; try again"
