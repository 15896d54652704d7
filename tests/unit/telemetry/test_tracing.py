"""The sampling decision, and that nothing is there where it says no."""

from __future__ import annotations

import subprocess
import sys

import pytest

from contextengine_server.telemetry.tracing import (
    CURRENT,
    MAX_VALUE_CHARS,
    NO_TRACE,
    Span,
    SpanParent,
    Tracer,
    parse_traceparent,
    under,
)

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_traceparent_is_read():
    parent = parse_traceparent(TRACEPARENT)
    assert parent == SpanParent(
        0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331, sampled=True
    )
    unsampled = parse_traceparent(TRACEPARENT[:-2] + "00")
    assert unsampled
    assert not unsampled.sampled
    later = parse_traceparent("cc" + TRACEPARENT[2:] + "-what-comes-later")
    assert later
    assert later.sampled


@pytest.mark.parametrize(
    "value",
    [
        "",
        "00",
        TRACEPARENT.upper(),
        TRACEPARENT + "-more",
        "ff" + TRACEPARENT[2:],
        "cc" + TRACEPARENT[2:] + "more",
        TRACEPARENT.replace("-", "_"),
        "00-" + "0" * 32 + TRACEPARENT[35:],
        TRACEPARENT[:36] + "0" * 16 + "-01",
        TRACEPARENT[:-2] + "0g",
        TRACEPARENT[:3] + " " + TRACEPARENT[4:],
        TRACEPARENT.encode(),
    ],
)
def test_what_is_no_traceparent_decides_nothing(value):
    assert parse_traceparent(value) is None


def test_where_nothing_is_sampled_nothing_is_made():
    asked: list[str] = []

    def peer() -> str:
        asked.append("who is there")
        return ""

    tracer = Tracer(0.0, lambda span: None)
    for trace in (
        Tracer().begin("a.B/C", [("traceparent", TRACEPARENT)], lambda: "x"),
        tracer.begin("a.B/C", [("traceparent", TRACEPARENT[:-2] + "00")], peer),
        tracer.begin("a.B/C", [], peer),
        tracer.background("compact", ""),
        Tracer().background("compact", TRACEPARENT),
    ):
        assert trace is NO_TRACE
        with trace.span("load") as inner:
            inner.set("key", 1)
        assert inner is NO_TRACE
        assert trace.traceparent() == ""
        assert trace.ids() == {}
    assert not asked


def test_background_work_is_traced_where_its_cause_was():
    tracer = Tracer(0.0, lambda span: None)
    linked = tracer.background("compact", TRACEPARENT)
    assert isinstance(linked, Span)
    assert linked.link == parse_traceparent(TRACEPARENT)
    always = Tracer(1.0, lambda span: None)
    assert always.background("compact", TRACEPARENT[:-2] + "00") is NO_TRACE
    assert always.background("compact", "") is NO_TRACE


@pytest.mark.parametrize("flag", ["00", "01"])
def test_where_callers_do_not_decide_the_ratio_does_by_the_trace_id(flag):
    spans: list[Span] = []

    def begin(ratio: float, low: int) -> bool:
        parent = f"00-{'a' * 16}{low:016x}-b7ad6b7169203331-{flag}"
        tracer = Tracer(ratio, spans.append, parent_based=False)
        trace = tracer.begin("a.B/C", [("traceparent", parent)], str)
        trace.finish("OK")
        return trace.sampled

    assert begin(0.25, 0x3FFF_FFFF_FFFF_0000)
    assert not begin(0.25, 0x4000_0000_0000_0000)
    assert not begin(0.0, 1)
    assert begin(1.0, 0xFFFF_FFFF_FFFF_0000)
    assert {span.parent_id for span in spans} == {0xB7AD6B7169203331}, "the trace is continued"


@pytest.mark.parametrize(
    ("headers", "kept"),
    [
        (["vendor=abc"], "vendor=abc"),
        (["a=1", "b@c=x y"], "a=1,b@c=x y"),
        ([], ""),
        (["what a user said"], ""),
        (["a=1,"], ""),
        (["a=" + "x" * 250, "b=" + "x" * 256, "c=1"], ""),
    ],
)
def test_the_callers_tracestate_goes_on(headers, kept):
    spans: list[Span] = []
    metadata = [("tracestate", header) for header in headers] + [("traceparent", TRACEPARENT)]
    trace = Tracer(0.0, spans.append).begin("a.B/C", metadata, str)
    with trace.span("load"):
        pass
    trace.finish("OK")
    assert [span.state for span in spans] == [kept, kept]


def test_the_current_span_is_there_within_alone():
    trace = Tracer(1.0, lambda span: None).begin("a.B/C", [], str)
    with under(trace):
        assert CURRENT.get() is trace
    assert CURRENT.get() is NO_TRACE


def test_a_span_is_handed_over_once_and_carries_no_long_text():
    spans: list[Span] = []
    trace = Tracer(1.0, spans.append).begin("a.B/C", [], lambda: "ipv6:%5B::1%5D:4000")

    def load() -> None:
        with trace.span("load") as span:
            span.set("note", "x" * 5_000)
            raise KeyError("a user's text")

    with pytest.raises(KeyError):
        load()
    trace.finish("DEADLINE_EXCEEDED")
    trace.finish("OK")
    load_span, served = spans
    assert load_span.attributes == {"note": "x" * MAX_VALUE_CHARS, "error.type": "KeyError"}
    assert served.attributes["network.peer.address"] == "::1"
    assert served.attributes["network.peer.port"] == 4000
    assert served.attributes["rpc.response.status_code"] == "DEADLINE_EXCEEDED"
    assert served.error
    parent = parse_traceparent(trace.traceparent())
    assert parent == SpanParent(served.trace_id, served.span_id, sampled=True)


def test_opentelemetry_is_imported_only_where_something_is_exported():
    program = (
        "import sys, contextengine_server.telemetry.export;"
        "import contextengine_server.api.pipeline.server;"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=150, check=False).returncode == 0
