"""The current span in W3C form, where OpenTelemetry is installed and has one."""

from __future__ import annotations

from typing import Any

_trace: Any
try:
    from opentelemetry import trace as _trace
except ImportError:
    _trace = None

Pairs = tuple[tuple[str, str], ...]


def trace_context() -> Pairs:
    """`traceparent`, and `tracestate` where there is one. Empty: no span is current."""
    if _trace is None:
        return ()
    span = _trace.get_current_span().get_span_context()
    if not span.is_valid:
        return ()
    parent = ("traceparent", f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}")
    state = span.trace_state.to_header()
    return (parent, ("tracestate", state)) if state else (parent,)
