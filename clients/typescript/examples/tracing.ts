import { type SpanOptions, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-grpc";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { defaultResource, detectResources, envDetector } from "@opentelemetry/resources";

/** Sends spans over OTLP where OTEL_EXPORTER_OTLP_ENDPOINT says to. What it answers sends the last ones. */
export function startTracing(): () => Promise<void> {
  if (!process.env["OTEL_EXPORTER_OTLP_ENDPOINT"]) return async () => {};
  const provider = new NodeTracerProvider({
    resource: defaultResource().merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  provider.register();
  return () => provider.shutdown();
}

/** Does the work in a span. */
export function traced<Result>(
  name: string,
  work: () => Promise<Result>,
  options: SpanOptions = {},
): Promise<Result> {
  return trace.getTracer("agent").startActiveSpan(name, options, async (span) => {
    try {
      return await work();
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.end();
    }
  });
}

/** Makes a call of the service in the client's span. The client hands the span on with the call. */
export function tracedCall<Result>(rpc: string, call: () => Promise<Result>): Promise<Result> {
  const method = `contextengine.v1.ContextEngine/${rpc}`;
  const attributes = { "rpc.system.name": "grpc", "rpc.method": method };
  return traced(method, call, { kind: SpanKind.CLIENT, attributes });
}
