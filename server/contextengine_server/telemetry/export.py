"""OpenTelemetry: where spans leave the process over OTLP; `metrics_export` does the same for
metrics.

OpenTelemetry is imported inside the functions below, and so only where something is exported: it
takes a third of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from contextengine_server.telemetry.tracing import Sink, Span, Tracer

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import SpanProcessor

SERVICE_NAME = "contextengine"
SCOPE = "contextengine_server"
_INSTANCE = str(uuid4())
"""Tells this process from others of its name: two that count under one name look like one that
counts backwards."""

EXPORT_TIMEOUT_S = 3
"""For one export, retries included. It also bounds how long the last one holds up the end of the
process."""


class OtlpOptions(msgspec.Struct, frozen=True):
    """Where to send. An `http://` endpoint is plain text, `https://` is TLS."""

    endpoint: str = "http://127.0.0.1:4317"
    headers: Mapping[str, str] = {}
    resource: Mapping[str, str] = {}
    """Further resource attributes, `service.instance.id` for example."""


def start_tracing(
    ratio: float, options: OtlpOptions, *, parent_based: bool = True
) -> tuple[Tracer, Callable[[], None]]:
    """A tracer that exports over OTLP gRPC, and what flushes and ends the export (in seconds: not
    on the loop)."""
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    processor = BatchSpanProcessor(
        OTLPSpanExporter(
            endpoint=options.endpoint,
            insecure=options.endpoint.startswith("http://"),
            headers=dict(options.headers) or None,
            timeout=EXPORT_TIMEOUT_S,
        ),
        max_queue_size=16_384,
        max_export_batch_size=2_048,
        schedule_delay_millis=1_000,
    )
    sink = span_sink(processor, resource_of(options))
    return Tracer(ratio, sink, parent_based=parent_based), processor.shutdown


def span_sink(processor: SpanProcessor, resource: Resource | None = None) -> Sink:
    """Hands ended spans to a span processor of the OpenTelemetry SDK.

    Spans are built in their ended form, with the sampling decided before: the SDK's own way to open
    one costs 38 µs and more, this one 5.
    """
    from opentelemetry.sdk.resources import Resource as SdkResource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import (
        Link,
        SpanContext,
        SpanKind,
        Status,
        StatusCode,
        TraceFlags,
        TraceState,
    )

    described = resource or SdkResource.create({"service.name": SERVICE_NAME})
    scope = InstrumentationScope(SCOPE)
    kinds = {"server": SpanKind.SERVER, "client": SpanKind.CLIENT, "internal": SpanKind.INTERNAL}
    sampled, unset, failed = (
        TraceFlags(TraceFlags.SAMPLED),
        Status(StatusCode.UNSET),
        Status(StatusCode.ERROR),
    )

    def sink(span: Span) -> None:
        parent = links = None
        state = TraceState.from_header([span.state]) if span.state else None
        if span.parent_id:
            parent = SpanContext(span.trace_id, span.parent_id, span.parent_remote, sampled, state)
        if span.link is not None:
            links = [Link(SpanContext(span.link.trace_id, span.link.span_id, True, sampled))]
        processor.on_end(
            ReadableSpan(
                name=span.name,
                context=SpanContext(span.trace_id, span.span_id, False, sampled, state),
                parent=parent,
                resource=described,
                attributes=span.attributes,
                links=links or (),
                kind=kinds[span.kind],
                status=failed if span.error else unset,
                start_time=span.start,
                end_time=span.end,
                instrumentation_scope=scope,
            )
        )

    return sink


def resource_of(options: OtlpOptions) -> Resource:
    """Who sends: the service, its version, and what the options add."""
    from opentelemetry.sdk.resources import Resource as SdkResource

    described = {
        "service.name": SERVICE_NAME,
        "service.version": version("contextengine-server"),
        "service.instance.id": _INSTANCE,
    }
    return SdkResource.create({**described, **options.resource})
