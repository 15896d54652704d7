"""Counting by hand, and what OpenTelemetry reads of it."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from contextengine_server.telemetry.export import observe_metrics
from contextengine_server.telemetry.metrics import Metrics


def test_a_snapshot_has_everything_by_name_and_labels():
    metrics = Metrics()
    metrics.counter("messages", "Messages stored", {"role": "user"}).inc(3)
    metrics.counter("messages", "Messages stored", {"role": "user"}).inc()
    metrics.counter("messages", "Messages stored", {"role": "tool"}).inc()
    metrics.gauge("sessions", lambda: 12, "Warm sessions")
    latency = metrics.histogram("latency", "How long", bounds=(1.0, 2.0, 4.0))
    for value in (0.5, 1.0, 1.5, 99.0):
        latency.observe(value)
    assert metrics.snapshot() == {
        "messages{role=user}": 4,
        "messages{role=tool}": 1,
        "sessions": 12,
        "latency.count": 4,
        "latency.sum": 102.0,
        "latency.p50": 1.0,
        "latency.p99": 4.0,
    }
    assert latency.buckets == [2, 1, 0, 1]


def test_an_empty_histogram_has_no_quantile():
    assert Metrics().histogram("latency", "How long").quantile(0.5) == 0


def test_a_name_is_one_kind_of_metric():
    metrics = Metrics()
    metrics.counter("messages", "Messages stored")
    with pytest.raises(ValueError, match="is a Counter already"):
        metrics.histogram("messages", "Messages stored")


def test_opentelemetry_reads_what_was_counted():
    metrics = Metrics()
    metrics.counter("calls", "Calls", {"status": "OK"}).inc(2)
    metrics.gauge("depth", lambda: 1.5, "Depth")
    latency = metrics.histogram("latency", "How long", bounds=(1.0, 2.0))
    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader], shutdown_on_exit=False)
    observe_metrics(metrics, provider)
    # Labels that come up after the instruments were made are read too.
    metrics.counter("calls", "Calls", {"status": "ABORTED"}).inc()
    latency.observe(0.5)
    latency.observe(7.0)
    data = reader.get_metrics_data()
    assert data
    found = {
        (metric.name, *sorted(dict(point.attributes or {}).items())): point.value  # type: ignore[union-attr]
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    }
    provider.shutdown()
    assert found == {
        ("calls", ("status", "OK")): 2,
        ("calls", ("status", "ABORTED")): 1,
        ("depth",): 1.5,
        ("latency.count",): 2,
        ("latency.sum",): 7.5,
        ("latency.bucket", ("le", "1.0")): 1,
        ("latency.bucket", ("le", "2.0")): 1,
        ("latency.bucket", ("le", "+Inf")): 2,
    }
