"""What leaves the process: a collector on loopback gets spans and metrics over OTLP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from contextengine_proto.v1 import assemble_pb2
from contextengine_server.telemetry.export import OtlpOptions, start_tracing
from contextengine_server.telemetry.metrics import Metrics
from contextengine_server.telemetry.metrics_export import start_metrics
from tests.integration.api_infra.house import house, nothing
from tests.integration.harness import house as whole_house

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
METRICS = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"


class Collector(grpc.GenericRpcHandler):
    """Keeps what it is sent."""

    def __init__(self) -> None:
        self.got: dict[str, list[bytes]] = {}

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any]:
        method = handler_call_details.method

        async def keep(raw: bytes, context: Any) -> bytes:
            self.got.setdefault(method, []).append(raw)
            return b""

        return grpc.unary_unary_rpc_method_handler(keep)


@asynccontextmanager
async def collector() -> AsyncIterator[tuple[Collector, OtlpOptions]]:
    kept = Collector()
    server = grpc.aio.server(handlers=[kept])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield kept, OtlpOptions(f"http://127.0.0.1:{port}", resource={"service.instance.id": "one"})
    finally:
        await server.stop(0)


async def test_a_collector_gets_a_call_whole():
    async def plan(request, call):
        with call.trace.span("plan"):
            return await nothing(request, call)

    async with collector() as (kept, options):
        tracer, stop = start_tracing(1.0, options)
        async with house(plan, tracer=tracer) as h:
            await h.engine.Assemble(assemble_pb2.AssembleRequest())
        await asyncio.to_thread(stop)
    (raw,) = kept.got[TRACES]
    (resource,) = trace_service_pb2.ExportTraceServiceRequest.FromString(raw).resource_spans
    attributes = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
    assert (attributes["service.name"], attributes["service.instance.id"]) == (
        "contextengine",
        "one",
    )
    child, served = resource.scope_spans[0].spans
    assert (child.name, served.name) == ("plan", "contextengine.v1.ContextEngine/Assemble")
    assert child.parent_span_id == served.span_id
    assert child.trace_id == served.trace_id


async def test_a_collector_gets_the_counts():
    metrics = Metrics()
    metrics.counter("contextengine.messages", "Messages stored").inc(5)
    async with collector() as (kept, options):
        stop = start_metrics(metrics, options)
        metrics.counter("contextengine.messages", "Messages stored").inc(2)
        await asyncio.to_thread(stop)
    request = metrics_service_pb2.ExportMetricsServiceRequest.FromString(kept.got[METRICS][-1])
    (metric,) = request.resource_metrics[0].scope_metrics[0].metrics
    assert metric.name == "contextengine.messages"
    assert metric.sum.data_points[0].as_int == 7
    assert metric.sum.is_monotonic


async def test_a_collector_gets_what_a_server_does(tmp_path):
    """The same as Prometheus sees: histograms by rpc and status, and gauges of the store."""
    async with collector() as (kept, options):
        async with whole_house(
            tmp_path, **{"telemetry.metrics.endpoint": options.endpoint}
        ) as running:
            await running.client.engines.list()
            await running.client.engines.list()
        request = metrics_service_pb2.ExportMetricsServiceRequest.FromString(kept.got[METRICS][-1])
    (resource,) = request.resource_metrics
    assert "service.instance.id" in {pair.key for pair in resource.resource.attributes}
    metrics = {metric.name: metric for metric in resource.scope_metrics[0].metrics}
    counted = {
        tuple(pair.value.string_value for pair in point.attributes): point.count
        for point in metrics["rpc.server.call.duration"].histogram.data_points
        if point.count
    }
    assert counted == {("contextengine.v1.Engines/List", "OK", "grpc"): 2}
    assert metrics["rpc.server.call.duration"].unit == "s"
    assert metrics["contextengine.store.up"].gauge.data_points[0].as_int == 1
    assert metrics["contextengine.messages.stored"].sum.is_monotonic


async def test_no_collector_is_no_trouble():
    tracer, stop = start_tracing(1.0, OtlpOptions("http://127.0.0.1:9"))
    async with house(tracer=tracer) as h:
        assert (await h.engine.Assemble(assemble_pb2.AssembleRequest())).revision == 3
    await asyncio.wait_for(asyncio.to_thread(stop), 30)
