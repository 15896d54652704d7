"""Counting by hand, and what OpenTelemetry reads of it."""

from __future__ import annotations

import pytest
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.resources import Resource

from contextengine_server.telemetry.metrics import Metrics
from contextengine_server.telemetry.metrics_export import metrics_data


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
        metrics.histogram("messages", "Messages stored", {"role": "user"})


def test_opentelemetry_gets_what_was_counted():
    metrics = Metrics()
    metrics.counter("calls", "Calls", {"status": "OK"}).inc(2)
    metrics.counter("calls", "Calls", {"status": "ABORTED"}).inc()
    metrics.gauge("depth", lambda: 1.5, "Depth")
    latency = metrics.histogram("latency", "How long", bounds=(1.0, 2.0))
    latency.observe(0.5)
    latency.observe(7.0)
    raw = encode_metrics(metrics_data(metrics, Resource.create({"service.name": "one"}), 5))
    (resource,) = raw.resource_metrics
    assert "one" in {pair.value.string_value for pair in resource.resource.attributes}
    calls, depth, durations = resource.scope_metrics[0].metrics
    assert [
        (point.attributes[0].value.string_value, point.as_int) for point in calls.sum.data_points
    ] == [
        ("OK", 2),
        ("ABORTED", 1),
    ]
    assert calls.sum.is_monotonic
    assert [point.as_double for point in depth.gauge.data_points] == [1.5]
    (point,) = durations.histogram.data_points
    assert (point.count, point.sum, list(point.bucket_counts)) == (2, 7.5, [1, 0, 1])
    assert list(point.explicit_bounds) == [1.0, 2.0]
    assert point.start_time_unix_nano == 5 < point.time_unix_nano
    assert not point.HasField("max")
