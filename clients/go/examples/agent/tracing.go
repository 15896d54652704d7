package main

import (
	"context"
	"os"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// startTracing sends spans over OTLP where OTEL_EXPORTER_OTLP_ENDPOINT says to. What it answers sends the last ones.
func startTracing(ctx context.Context) (func(context.Context) error, error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" {
		return func(context.Context) error { return nil }, nil
	}
	exporter, err := otlptracegrpc.New(ctx)
	if err != nil {
		return nil, err
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter))
	otel.SetTracerProvider(provider)
	return provider.Shutdown, nil
}

// traced runs the work in a span.
func traced(ctx context.Context, name string, work func(context.Context) error, options ...trace.SpanStartOption) error {
	ctx, span := otel.Tracer("agent").Start(ctx, name, options...)
	defer span.End()
	err := work(ctx)
	if err != nil {
		span.SetStatus(codes.Error, "")
	}
	return err
}

// tracedCall runs a call of the service in the client's span. The client hands the span on with the call.
func tracedCall(ctx context.Context, rpc string, call func(context.Context) error) error {
	method := "contextengine.v1.ContextEngine/" + rpc
	return traced(ctx, method, call,
		trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("rpc.system.name", "grpc"), attribute.String("rpc.method", method)),
	)
}
