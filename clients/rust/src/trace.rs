//! The current OpenTelemetry span, as W3C trace context.

use opentelemetry::Context;
use opentelemetry::trace::TraceContextExt;
use tonic::metadata::MetadataMap;

/// Adds `traceparent`, and `tracestate` where it is not empty, unless they are there or no span is current.
pub(crate) fn add_current_span(metadata: &mut MetadataMap) {
    let current = Context::current();
    let span = current.span();
    let span = span.span_context();
    if !span.is_valid() || metadata.contains_key("traceparent") {
        return;
    }
    let parent = format!("00-{}-{}-{:02x}", span.trace_id(), span.span_id(), span.trace_flags().to_u8());
    if let Ok(value) = parent.parse() {
        metadata.insert("traceparent", value);
    }
    let state = span.trace_state().header();
    if let Ok(value) = state.parse()
        && !state.is_empty()
    {
        metadata.insert("tracestate", value);
    }
}
