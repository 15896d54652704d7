"""Which transports there are."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from contextengine_server.api.transports.grpcio import GrpcioTransport
from contextengine_server.api.transports.native import NativeTransport
from contextengine_server.api.transports.transport import Make

TRANSPORTS: Mapping[str, Make] = MappingProxyType(
    {"grpcio": GrpcioTransport, "native": NativeTransport}
)
"""By the names that `server.transport` has."""
