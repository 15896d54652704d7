//! Spans of the agent's own. The client hands the current one on with each call.

use std::env;
use std::error::Error;
use std::future::Future;

use opentelemetry::trace::{FutureExt, SpanBuilder, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue, global};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::trace::SdkTracerProvider;

/// Sends spans over OTLP where OTEL_EXPORTER_OTLP_ENDPOINT says to. The last ones are sent by `shutdown`.
pub fn start_tracing() -> Result<Option<SdkTracerProvider>, Box<dyn Error>> {
    if env::var_os("OTEL_EXPORTER_OTLP_ENDPOINT").is_none() {
        return Ok(None);
    }
    let exporter = SpanExporter::builder().with_tonic().build()?;
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).build();
    global::set_tracer_provider(provider.clone());
    Ok(Some(provider))
}

/// Does the work in a span.
pub async fn traced<T, E>(name: &'static str, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    within(SpanBuilder::from_name(name), work).await
}

/// Makes a call of the service in the client's span.
pub async fn traced_call<T, E>(rpc: &str, call: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let method = format!("contextengine.v1.ContextEngine/{rpc}");
    let attributes = [KeyValue::new("rpc.system.name", "grpc"), KeyValue::new("rpc.method", method.clone())];
    let span = SpanBuilder::from_name(method).with_kind(SpanKind::Client).with_attributes(attributes);
    within(span, call).await
}

async fn within<T, E>(span: SpanBuilder, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let context = Context::current_with_span(global::tracer("agent").build(span));
    let done = work.with_context(context.clone()).await;
    if done.is_err() {
        context.span().set_status(Status::error(""));
    }
    context.span().end();
    done
}
