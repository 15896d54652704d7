"""The rpcs of contextengine.v1 as their descriptors say, and what holds for each before its
servicer is asked."""

from __future__ import annotations

import keyword
import re
from functools import cache

import msgspec
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from contextengine_proto.v1 import (
    context_engine_pb2,
    engines_pb2,
    projection_pb2,
    recall_pb2,
    runtime_pb2,
    sessions_pb2,
)

OPERATOR_ONLY = frozenset(
    f"contextengine.v1.Engines/{name}" for name in ("Assign", "ListQuotas", "SetQuota")
)
"""The rpcs that need the role operator. All others are open to both roles."""

LONG_LIVED = frozenset({"contextengine.v1.Sessions/Watch", "contextengine.v1.Runtime/Attach"})
"""Streams that last as long as their client likes. They have a limit of their own and end when the
server drains."""

LONG = frozenset(
    {
        "contextengine.v1.ContextEngine/Compact",
        "contextengine.v1.Sessions/Export",
        "contextengine.v1.Sessions/Import",
    }
)
"""Calls that take as long as a model takes, or their client to send or read."""

_FILES = (context_engine_pb2, recall_pb2, projection_pb2, runtime_pb2, sessions_pb2, engines_pb2)


class Rpc(msgspec.Struct, frozen=True):
    """One rpc: `method` is `contextengine.v1.Service/Name`, `attribute` the name of its servicer's
    method."""

    service: str
    name: str
    method: str
    attribute: str
    request: type[Message]
    streams_in: bool
    streams_out: bool
    kind: str
    """What it is counted among: `calls`, `long_calls` or `streams`."""
    long_lived: bool
    """True for a stream that lasts as long as its client likes."""
    operator_only: bool


@cache
def services() -> tuple[str, ...]:
    """The full names of the contract's services."""
    return tuple(
        service.full_name
        for file in _FILES
        for service in file.DESCRIPTOR.services_by_name.values()
    )


@cache
def rpcs() -> tuple[Rpc, ...]:
    """Every rpc of the contract, in the order of the protos."""
    return tuple(
        Rpc(
            service=service.full_name,
            name=rpc.name,
            method=(method := f"{service.full_name}/{rpc.name}"),
            attribute=attribute_name(rpc.name),
            request=GetMessageClass(rpc.input_type),
            streams_in=rpc.client_streaming,
            streams_out=rpc.server_streaming,
            kind=(
                "streams" if method in LONG_LIVED else "long_calls" if method in LONG else "calls"
            ),
            long_lived=method in LONG_LIVED,
            operator_only=method in OPERATOR_ONLY,
        )
        for file in _FILES
        for service in file.DESCRIPTOR.services_by_name.values()
        for rpc in service.methods
    )


def attribute_name(rpc: str) -> str:
    """The servicer's method for an rpc: `IngestBatch` is `ingest_batch`, `Import` is `import_`."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", rpc).lower()
    return f"{snake}_" if keyword.iskeyword(snake) else snake
