import { context, isSpanContextValid, trace } from "@opentelemetry/api";

/** The current span in W3C form: `traceparent`, and `tracestate` where there is one. Empty: no span is current. */
export function traceContext(): Record<string, string> {
  const span = trace.getSpanContext(context.active());
  if (span === undefined || !isSpanContextValid(span)) return {};
  const flags = span.traceFlags.toString(16).padStart(2, "0");
  const state = span.traceState?.serialize();
  return { traceparent: `00-${span.traceId}-${span.spanId}-${flags}`, ...(state ? { tracestate: state } : {}) };
}
