"""The Prometheus endpoint: the same numbers, read when they are scraped, beside what the process
itself uses.

Names follow OpenTelemetry's rules for Prometheus: dots become underscores, the unit stands at the
end (`_seconds`, `_bytes`, `_ratio`), counters end in `_total`. prometheus_client is imported only
where the endpoint is on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

from contextengine_server.telemetry.metrics import Counter, Gauge, Histogram, Metric, Metrics

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family

UNITS = {"s": "seconds", "By": "bytes", "1": "ratio"}
"""How a unit stands at the end of a name. Annotations such as `{token}` do not."""


def prometheus_name(metric: Metric) -> str:
    """What a metric is called in Prometheus, with the `_total` of a counter."""
    name = metric.name.replace(".", "_")
    unit = UNITS.get(metric.unit, "")
    if unit and not name.endswith(f"_{unit}"):
        name = f"{name}_{unit}"
    return f"{name}_total" if isinstance(metric, Counter) else name


def families(metrics: Metrics) -> Iterator[Family]:
    """Every metric now, in prometheus_client's form."""
    from prometheus_client import metrics_core as core

    kinds = {
        Counter: core.CounterMetricFamily,
        Gauge: core.GaugeMetricFamily,
        Histogram: core.HistogramMetricFamily,
    }
    ordered = sorted(metrics, key=lambda metric: metric.name)
    for _, same in groupby(ordered, lambda metric: metric.name):
        group = list(same)
        first = group[0]
        # One row of labels for all: those that a metric lacks are empty.
        keys = sorted({key for metric in group for key, _ in metric.labels})
        names = [key.replace(".", "_") for key in keys]
        family: Any = kinds[type(first)](prometheus_name(first), first.description, labels=names)
        for metric in group:
            values = [dict(metric.labels).get(key, "") for key in keys]
            match metric:
                case Counter():
                    family.add_metric(values, metric.value)
                case Gauge():
                    family.add_metric(values, metric.read())
                case Histogram():
                    family.add_metric(values, _cumulative(metric), metric.total)
        yield family


def serve_metrics(
    host: str, port: int, metrics: Metrics, version: str
) -> tuple[int, Callable[[], None]]:
    """Serves `metrics` over HTTP at any path, in threads of its own. Answers the port and what ends
    it. Raises OSError where the address cannot be bound."""
    from prometheus_client import (
        CollectorRegistry,
        GCCollector,
        PlatformCollector,
        ProcessCollector,
        start_http_server,
    )
    from prometheus_client.metrics_core import InfoMetricFamily

    class Ours:
        """What prometheus_client asks at each scrape."""

        def collect(self) -> Iterator[Family]:
            yield InfoMetricFamily(
                "contextengine_build", "The version that runs", {"version": version}
            )
            yield from families(metrics)

    registry = CollectorRegistry()
    registry.register(Ours())
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    server, thread = start_http_server(port, host, registry)

    def end() -> None:
        server.shutdown()
        server.server_close()
        thread.join(5)

    return server.server_port, end


def _cumulative(histogram: Histogram) -> list[tuple[str, float]]:
    """The counts under each bound, in text as Prometheus writes them."""
    running, found = 0, []
    bounds = (*map(repr, histogram.bounds), "+Inf")
    for bound, bucket in zip(bounds, list(histogram.buckets), strict=True):
        running += bucket
        found.append((bound, float(running)))
    return found
