"""An OTLP receiver on loopback that keeps the spans it is sent, and a service that sends it all of
its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1 import trace_pb2

from tests.integration.harness import House

SERVER, CLIENT = trace_pb2.Span.SPAN_KIND_SERVER, trace_pb2.Span.SPAN_KIND_CLIENT


@dataclass(frozen=True)
class Seen:
    """A span as it was sent; ids in hexadecimal."""

    raw: trace_pb2.Span

    @property
    def name(self) -> str:
        return self.raw.name

    @property
    def trace_id(self) -> str:
        return self.raw.trace_id.hex()

    @property
    def span_id(self) -> str:
        return self.raw.span_id.hex()

    @property
    def parent_id(self) -> str:
        return self.raw.parent_span_id.hex()

    @property
    def links(self) -> list[tuple[str, str]]:
        return [(link.trace_id.hex(), link.span_id.hex()) for link in self.raw.links]

    @property
    def attributes(self) -> dict[str, Any]:
        return {pair.key: _plain(pair.value) for pair in self.raw.attributes}


def _plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(inner) for inner in value.array_value.values]
    return getattr(value, str(kind))


class Receiver(trace_service_pb2_grpc.TraceServiceServicer):
    """Keeps what it is sent."""

    def __init__(self) -> None:
        self.requests: list[trace_service_pb2.ExportTraceServiceRequest] = []
        self.endpoint = ""

    async def Export(
        self, request: Any, context: Any
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        self.requests.append(request)
        return trace_service_pb2.ExportTraceServiceResponse()

    def __iter__(self) -> Iterator[Seen]:
        """All spans, as they ended."""
        for request in self.requests:
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    yield from map(Seen, scope.spans)

    def named(self, name: str) -> list[Seen]:
        """The spans of this name; of an rpc, its name alone will do."""
        return [
            span for span in self if span.name in (name, f"contextengine.v1.ContextEngine/{name}")
        ]

    def below(self, span: Seen) -> list[Seen]:
        """The children of a span, by their beginning."""
        children = [s for s in self if s.parent_id == span.span_id and s.trace_id == span.trace_id]
        return sorted(children, key=lambda child: child.raw.start_time_unix_nano)

    def names(self, span: Seen) -> list[str]:
        """The names of the children of a span, by their beginning."""
        return [child.name for child in self.below(span)]


@asynccontextmanager
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver that runs."""
    made = Receiver()
    server = grpc.aio.server()
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(made, server)  # type: ignore[no-untyped-call]
    made.endpoint = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    try:
        yield made
    finally:
        await server.stop(0)


@asynccontextmanager
async def traced(
    directory: Path, ratio: float = 1.0, **settings: Any
) -> AsyncIterator[tuple[House, Receiver]]:
    """A service that sends its spans to a receiver. They are there for certain once it has stopped:
    `house.stop()`."""
    async with receiver() as seen:
        traces: dict[str, Any] = {
            "telemetry.traces.endpoint": seen.endpoint,
            "telemetry.traces.sample_ratio": ratio,
        }
        house = House(directory, **traces, **settings)
        await house.start()
        try:
            yield house, seen
        finally:
            await house.stop()
