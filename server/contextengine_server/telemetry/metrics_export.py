"""Metrics over OTLP: what was counted is read at intervals and sent, histograms as histograms.

The exporter of the OpenTelemetry SDK is used, its instruments are not: they have no observable
histogram, and one that is not costs 9 µs a call.

OpenTelemetry is imported inside the functions below, and so only where something is exported.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from itertools import groupby
from time import time_ns
from typing import TYPE_CHECKING

from contextengine_server.telemetry.export import EXPORT_TIMEOUT_S, SCOPE, OtlpOptions, resource_of
from contextengine_server.telemetry.metrics import Counter, Gauge, Histogram, Metric, Metrics

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import export as sdk
    from opentelemetry.sdk.resources import Resource

INTERVAL_MS = 15_000


def start_metrics(
    metrics: Metrics, options: OtlpOptions, interval_ms: int = INTERVAL_MS
) -> Callable[[], None]:
    """Exports `metrics` over OTLP gRPC at intervals. Answers what sends the last values and ends
    the export (in seconds: not on the loop)."""
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter

    began, resource, over = time_ns(), resource_of(options), threading.Event()
    exporter = OTLPMetricExporter(
        endpoint=options.endpoint,
        insecure=options.endpoint.startswith("http://"),
        headers=dict(options.headers) or None,
        timeout=EXPORT_TIMEOUT_S,
    )

    def send_until_over() -> None:
        going = True
        while going:
            going = not over.wait(interval_ms / 1000)
            exporter.export(metrics_data(metrics, resource, began))

    sender = threading.Thread(target=send_until_over, name="metrics-export", daemon=True)
    sender.start()

    def end() -> None:
        over.set()
        # One export that was under way, and the last one.
        sender.join(2 * EXPORT_TIMEOUT_S + 1)
        exporter.shutdown()

    return end


def metrics_data(metrics: Metrics, resource: Resource, began: int) -> sdk.MetricsData:
    """Every metric now, as the SDK's exporters take them. Times are nanoseconds since 1970 UTC;
    counting began at `began`."""
    from opentelemetry.sdk.metrics import export as sdk
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    now = time_ns()
    by_name = groupby(sorted(metrics, key=lambda metric: metric.name), lambda metric: metric.name)
    found = []
    for name, same in by_name:
        group = list(same)
        first = group[0]
        found.append(sdk.Metric(name, first.description, first.unit, _points(group, began, now)))
    scope = sdk.ScopeMetrics(InstrumentationScope(SCOPE), found, "")
    return sdk.MetricsData([sdk.ResourceMetrics(resource, [scope], "")])


def _points(group: Iterable[Metric], began: int, now: int) -> sdk.Sum | sdk.Gauge | sdk.Histogram:
    """The values of one name under all its labels. They are of one kind: `Metrics` sees to it."""
    from opentelemetry.sdk.metrics import export as sdk

    numbers: list[sdk.NumberDataPoint] = []
    histograms: list[sdk.HistogramDataPoint] = []
    counted = False
    for metric in group:
        labels = dict(metric.labels)
        match metric:
            case Counter():
                counted = True
                numbers.append(sdk.NumberDataPoint(labels, began, now, metric.value))
            case Gauge():
                numbers.append(sdk.NumberDataPoint(labels, began, now, metric.read()))
            case Histogram():
                buckets = list(metric.buckets)
                # The extremes are not kept: what is unknown is left out on the wire.
                unknown: dict[str, None] = {"min": None, "max": None}
                histograms.append(
                    sdk.HistogramDataPoint(
                        labels, began, now, sum(buckets), metric.total, buckets, metric.bounds,
                        **unknown  # type: ignore[arg-type]
                    )
                )  # fmt: skip
    cumulative = sdk.AggregationTemporality.CUMULATIVE
    if histograms:
        return sdk.Histogram(histograms, cumulative)
    return sdk.Sum(numbers, cumulative, is_monotonic=True) if counted else sdk.Gauge(numbers)
