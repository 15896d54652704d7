"""Addresses to listen on."""

from __future__ import annotations

import ipaddress


def is_host_and_port(address: str) -> bool:
    """True for host:port and [ipv6]:port, the port from 0 to 65535."""
    host, colon, port = address.rpartition(":")
    bare_ipv6 = ":" in host and not (host.startswith("[") and host.endswith("]"))
    number = port.isascii() and port.isdigit() and int(port) <= 65535
    return bool(colon and host and not bare_ipv6 and number)


def is_loopback(address: str) -> bool:
    """True where only this machine can connect to host:port."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
