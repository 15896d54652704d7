package dev.contextengine.examples;

import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanBuilder;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Scope;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.autoconfigure.AutoConfiguredOpenTelemetrySdk;
import java.util.Map;
import java.util.function.Supplier;

/** The spans of the example, sent over OTLP where OTEL_EXPORTER_OTLP_ENDPOINT says to. Without it there are none. */
final class Tracing implements AutoCloseable {
    private final Tracer tracer;
    private final Runnable stop;

    private Tracing(OpenTelemetry telemetry, Runnable stop) {
        this.tracer = telemetry.getTracer("agent");
        this.stop = stop;
    }

    static Tracing start() {
        if (System.getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == null) {
            return new Tracing(OpenTelemetry.noop(), () -> {});
        }
        OpenTelemetrySdk sdk = AutoConfiguredOpenTelemetrySdk.builder()
                .addPropertiesSupplier(() -> Map.of("otel.metrics.exporter", "none", "otel.logs.exporter", "none"))
                .build()
                .getOpenTelemetrySdk();
        return new Tracing(sdk, sdk::close);
    }

    /** Does the work in a span. */
    <R> R traced(String name, Supplier<R> work) {
        return within(tracer.spanBuilder(name), work);
    }

    /** Makes a call of the service in the client's span. The client hands the span on with the call. */
    <R> R tracedCall(String rpc, Supplier<R> call) {
        String method = "contextengine.v1.ContextEngine/" + rpc;
        return within(
                tracer.spanBuilder(method)
                        .setSpanKind(SpanKind.CLIENT)
                        .setAttribute("rpc.system.name", "grpc")
                        .setAttribute("rpc.method", method),
                call);
    }

    private static <R> R within(SpanBuilder builder, Supplier<R> work) {
        Span span = builder.startSpan();
        try (Scope ignored = span.makeCurrent()) {
            return work.get();
        } catch (RuntimeException error) {
            span.setStatus(StatusCode.ERROR);
            throw error;
        } finally {
            span.end();
        }
    }

    /** Sends the last spans. */
    @Override
    public void close() {
        stop.run();
    }
}
