"""One rpc, one server span and its children; whether there are any is the caller's decision, or the
ratio's."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from contextengine_proto.v1 import assemble_pb2
from contextengine_server.errors import SessionNotFound
from contextengine_server.telemetry.export import span_sink
from contextengine_server.telemetry.tracing import NO_TRACE, Tracer
from tests.integration.api_infra.house import failure, house, nothing

REQUEST = assemble_pb2.AssembleRequest()
METHOD = "contextengine.v1.ContextEngine/Assemble"
TRACE_ID, SPAN_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def caused(sampled: bool) -> tuple[tuple[str, str], ...]:
    return (("traceparent", f"00-{TRACE_ID}-{SPAN_ID}-{'01' if sampled else '00'}"),)


@pytest.fixture
def exported():
    exporter = InMemorySpanExporter()
    return exporter, span_sink(SimpleSpanProcessor(exporter))


async def in_two_steps(request, call):
    with call.trace.span("load"):
        pass
    with call.trace.span("plan") as span:
        span.set("contextengine.steps", 12)
    return await nothing(request, call)


async def test_a_sampled_caller_sees_the_whole_call(exported):
    exporter, sink = exported
    async with house(in_two_steps, tracer=Tracer(0.0, sink)) as h:
        await h.engine.Assemble(REQUEST, metadata=caused(sampled=True))
    load, plan, served = exporter.get_finished_spans()
    assert [load.name, plan.name, served.name] == ["load", "plan", METHOD]
    assert {f"{span.context.trace_id:032x}" for span in (load, plan, served)} == {TRACE_ID}
    assert f"{served.parent.span_id:016x}" == SPAN_ID
    assert served.parent.is_remote
    assert load.parent.span_id == plan.parent.span_id == served.context.span_id
    assert served.kind is SpanKind.SERVER
    assert served.attributes["rpc.system.name"] == "grpc"
    assert served.attributes["rpc.method"] == METHOD
    assert served.attributes["rpc.response.status_code"] == "OK"
    assert served.attributes["network.peer.address"] == "127.0.0.1"
    assert served.status.status_code is StatusCode.UNSET
    assert plan.attributes["contextengine.steps"] == 12
    assert (
        served.start_time <= load.start_time <= load.end_time <= plan.start_time <= served.end_time
    )


@pytest.mark.parametrize(
    ("ratio", "metadata", "spans"),
    [
        (1.0, caused(sampled=False), 0),
        (1.0, (), 3),
        (0.0, (), 0),
        (0.0, (("traceparent", "00-not-a-parent-01"),), 0),
        (1.0, (("traceparent", "00-not-a-parent-01"),), 3),
    ],
)
async def test_the_caller_decides_and_else_the_ratio(exported, ratio, metadata, spans):
    exporter, sink = exported
    async with house(in_two_steps, tracer=Tracer(ratio, sink)) as h:
        await h.engine.Assemble(REQUEST, metadata=metadata)
    assert len(exporter.get_finished_spans()) == spans
    assert (h.seen.calls[0].trace is NO_TRACE) == (spans == 0)


async def test_a_failure_is_on_the_span_without_its_text(exported):
    exporter, sink = exported

    async def missing(request, call):
        raise SessionNotFound("no session called secret")

    async def broken(request, call):
        with call.trace.span("load"):
            raise RuntimeError("a user's secret")

    for behaviour in (missing, broken):
        async with house(behaviour, tracer=Tracer(1.0, sink)) as h:
            await failure(h.engine.Assemble(REQUEST))
    not_found, load, internal = exporter.get_finished_spans()
    assert not_found.attributes["rpc.response.status_code"] == "NOT_FOUND"
    assert not_found.status.status_code is StatusCode.UNSET
    assert load.attributes["error.type"] == "RuntimeError"
    assert internal.attributes["error.type"] == "INTERNAL"
    assert internal.status.status_code is StatusCode.ERROR
    assert "secret" not in "".join(span.to_json() for span in (not_found, load, internal))


async def test_background_work_is_linked_to_what_caused_it(exported):
    exporter, sink = exported
    tracer = Tracer(1.0, sink)
    links = []

    async def cause(request, call):
        links.append(call.trace.traceparent())
        return await nothing(request, call)

    async with house(cause, tracer=tracer) as h:
        await h.engine.Assemble(REQUEST)
    with tracer.background("compact", links[0]) as work, work.span("summarize", "client"):
        pass
    served, summarize, compact = exporter.get_finished_spans()
    assert compact.links[0].context.span_id == served.context.span_id
    assert compact.context.trace_id != served.context.trace_id
    assert summarize.parent.span_id == compact.context.span_id
    assert summarize.kind is SpanKind.CLIENT
