"""The spans of the example, sent over OTLP where OTEL_EXPORTER_OTLP_ENDPOINT says to. Without it
there are none, and what they need may be missing: opentelemetry-sdk and
opentelemetry-exporter-otlp-proto-grpc."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

WANTED = bool(os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"))


@contextmanager
def tracing() -> Iterator[None]:
    """Sends the spans that end within."""
    if not WANTED:
        yield
        return
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()


def span(name: str) -> AbstractContextManager[object]:
    """A span of the agent's own work."""
    if not WANTED:
        return nullcontext()
    from opentelemetry import trace

    return trace.get_tracer("agent").start_as_current_span(name)


def call_span(rpc: str) -> AbstractContextManager[object]:
    """The client's span of a call of the service. The client hands it on with the call."""
    if not WANTED:
        return nullcontext()
    from opentelemetry import trace

    method = f"contextengine.v1.ContextEngine/{rpc}"
    return trace.get_tracer("agent").start_as_current_span(
        method,
        kind=trace.SpanKind.CLIENT,
        attributes={"rpc.system.name": "grpc", "rpc.method": method},
    )
