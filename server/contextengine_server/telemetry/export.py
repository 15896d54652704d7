"""OpenTelemetry: where spans and metrics leave the process over OTLP.

OpenTelemetry is imported inside the functions below, and so only where something is exported: it takes a third of a
second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from contextengine_server.telemetry.metrics import Counter, Gauge, Histogram, Metric, Metrics
from contextengine_server.telemetry.tracing import Sink, Span, Tracer

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import SpanProcessor

SERVICE_NAME = "contextengine"
SCOPE = "contextengine_server"
METRICS_INTERVAL_MS = 15_000
EXPORT_TIMEOUT_S = 3
"""For one export, retries included. It also bounds how long the last one holds up the end of the process."""


@dataclass(frozen=True, slots=True)
class OtlpOptions:
    """Where to send. An `http://` endpoint is plain text, `https://` is TLS."""

    endpoint: str = "http://127.0.0.1:4317"
    headers: Mapping[str, str] = field(default_factory=dict)
    resource: Mapping[str, str] = field(default_factory=dict)
    """Further resource attributes, `service.instance.id` for example."""


def start_tracing(ratio: float, options: OtlpOptions) -> tuple[Tracer, Callable[[], None]]:
    """A tracer that exports over OTLP gRPC, and what flushes and ends the export (in seconds: not on the loop)."""
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
    return Tracer(ratio, span_sink(processor, _resource(options))), processor.shutdown


def span_sink(processor: SpanProcessor, resource: Resource | None = None) -> Sink:
    """Hands ended spans to a span processor of the OpenTelemetry SDK.

    Spans are built in their ended form, with the sampling decided before: the SDK's own way to open one costs 38 µs
    and more, this one 5.
    """
    from opentelemetry.sdk.resources import Resource as SdkResource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

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
        if span.parent_id:
            parent = SpanContext(span.trace_id, span.parent_id, span.parent_remote, sampled)
        if span.link is not None:
            links = [Link(SpanContext(span.link.trace_id, span.link.span_id, True, sampled))]
        processor.on_end(
            ReadableSpan(
                name=span.name,
                context=SpanContext(span.trace_id, span.span_id, False, sampled),
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


def start_metrics(
    metrics: Metrics, options: OtlpOptions, interval_ms: int = METRICS_INTERVAL_MS
) -> Callable[[], None]:
    """Exports `metrics` over OTLP gRPC at intervals. Answers what flushes and ends the export.

    Call it when all metrics are registered: those that come later under a new name are not exported.
    """
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    exporter = OTLPMetricExporter(
        endpoint=options.endpoint,
        insecure=options.endpoint.startswith("http://"),
        headers=dict(options.headers) or None,
        timeout=EXPORT_TIMEOUT_S,
    )
    provider = MeterProvider(
        metric_readers=[PeriodicExportingMetricReader(exporter, export_interval_millis=interval_ms)],
        resource=_resource(options),
        shutdown_on_exit=False,
    )
    observe_metrics(metrics, provider)
    return provider.shutdown


def observe_metrics(metrics: Metrics, provider: MeterProvider) -> None:
    """Registers observable instruments that read `metrics` when they are collected.

    OpenTelemetry has no observable histogram, so one becomes three counters: `.count`, `.sum`, and `.bucket` with the
    cumulative count under each upper bound in the attribute `le`.
    """
    meter = provider.get_meter(SCOPE)
    for name, same in groupby(sorted(metrics, key=lambda metric: metric.name), lambda metric: metric.name):
        first = next(same)
        if isinstance(first, Histogram):
            for suffix, unit in (("count", "1"), ("sum", first.unit), ("bucket", "1")):
                meter.create_observable_counter(
                    f"{name}.{suffix}", [_reader(metrics, name, suffix)], unit, first.description
                )
        elif isinstance(first, Counter):
            meter.create_observable_counter(name, [_reader(metrics, name)], first.unit, first.description)
        else:
            meter.create_observable_gauge(name, [_reader(metrics, name)], first.unit, first.description)


def _reader(
    metrics: Metrics, name: str, part: str = "value"
) -> Callable[[CallbackOptions], Iterable[Observation]]:
    from opentelemetry.metrics import Observation

    def read(options: CallbackOptions) -> Iterable[Observation]:
        # Looked up at each collection, so that labels which came up since are there.
        for metric in metrics:
            if metric.name == name:
                for value, extra in _values(metric, part):
                    yield Observation(value, {**dict(metric.labels), **extra})

    return read


def _values(metric: Metric, part: str) -> Iterable[tuple[float, dict[str, str]]]:
    match metric:
        case Counter():
            yield metric.value, {}
        case Gauge():
            yield metric.read(), {}
        case Histogram() if part == "count":
            yield metric.count, {}
        case Histogram() if part == "sum":
            yield metric.total, {}
        case Histogram():
            running = 0
            for bound, bucket in zip((*map(repr, metric.bounds), "+Inf"), metric.buckets, strict=True):
                running += bucket
                yield running, {"le": bound}


def _resource(options: OtlpOptions) -> Resource:
    from opentelemetry.sdk.resources import Resource as SdkResource

    return SdkResource.create({"service.name": SERVICE_NAME, **options.resource})
