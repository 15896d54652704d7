//! The driver of the Rust client; see tests/conformance/protocol.md.

mod lending;
mod protocol;
mod rpcs;

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::str::FromStr;
use std::time::Duration;

use contextengine::formats::{
    ANTHROPIC_MESSAGES, OPENAI_RESPONSES, RawValue, from_anthropic, from_openai, from_responses, to_anthropic,
    to_openai, to_responses,
};
use contextengine::types::*;
use contextengine::{Client, Session, fallback, new_id, text_of_bytes, user};
use opentelemetry::Context;
use opentelemetry::trace::{FutureExt, SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use lending::Lending;
use protocol::{Asked, Failure, decoded, encoded, read, responded, told, written};

/// What the driver holds between two lines.
#[derive(Default)]
struct Driver {
    client: Option<Client>,
    handles: HashMap<(String, String), Session>,
    lending: Option<Lending>,
}

type Answer = Result<Value, Failure>;

#[tokio::main]
async fn main() {
    let mut driver = Driver::default();
    for line in std::io::stdin().lock().lines() {
        let answer = match serde_json::from_str(&line.expect("stdin is UTF-8")) {
            Ok(asked) => driver.answer(asked).await,
            Err(error) => Err(error.into()),
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", answer.unwrap_or_else(told)).and_then(|()| out.flush()).expect("stdout is open");
    }
}

impl Driver {
    async fn answer(&mut self, asked: Asked) -> Answer {
        match asked.op.as_str() {
            "connect" => self.connect(asked),
            "call" => self.call(&asked).await,
            "together" => self.together(&asked).await,
            "traced" => {
                let span = span_of(&asked.traceparent, &asked.tracestate)?;
                self.call(&asked).with_context(Context::new().with_remote_span_context(span)).await
            }
            "session" => self.session(asked).await,
            "assemble" => {
                let (session, request) = (self.choosing(&asked)?, read(&asked.request)?);
                let assembly = match (asked.delta, &asked.host_messages) {
                    (Some(false), _) => session.assemble_whole(request).await?,
                    (_, Some(host)) => session.assemble_beside(request, &decoded(host)?).await?,
                    _ => session.assemble(request).await?,
                };
                let degraded =
                    assembly.degraded.map(|degraded| json!({"reason": degraded.reason, "unqueued": degraded.unqueued}));
                let items = encoded(assembly.items.iter().map(|item| &**item));
                Ok(json!({"items": items, "response": written(&*assembly.response), "degraded": degraded}))
            }
            "project_codex" => responded(self.handle(&asked)?.project_codex(read(&asked.request)?).await),
            "flush" => {
                match &asked.session {
                    Some(_) => self.handle(&asked)?.flush().await?,
                    None => self.client()?.flush().await?,
                }
                Ok(json!({}))
            }
            "pending" => {
                let pending = match &asked.session {
                    Some(_) => self.handle(&asked)?.pending(),
                    None => self.client()?.pending(),
                };
                Ok(json!({"pending": pending, "rejected": self.client()?.rejected().len()}))
            }
            "import" => {
                let session = Some(self.handle(&asked)?.session().clone());
                let header = import_request::Header { session, ..Default::default() };
                responded(self.client()?.import(header, decoded::<Message>(&asked.messages)?).await)
            }
            "export" => {
                let mut rows = self.handle(&asked)?.export(ExportRequest::default()).await?;
                let mut messages = Vec::new();
                while let Some(row) = rows.next().await {
                    if let Some(export_response::Kind::Message(row)) = row?.kind {
                        messages.extend(row.message);
                    }
                }
                Ok(json!({"messages": encoded(&messages)}))
            }
            "watch" => {
                let request = WatchRequest { resume_position: asked.resume_position.clone(), ..Default::default() };
                let mut stream = self.handle(&asked)?.watch(request).await?;
                let mut events = Vec::new();
                while events.len() < asked.count
                    && let Some(event) = stream.next().await
                {
                    events.push(event?);
                }
                Ok(json!({"events": encoded(&events)}))
            }
            "lend" => {
                self.lending = Some(Lending::begin(self.client()?.clone(), &asked)?);
                Ok(json!({}))
            }
            "lent" => Ok(json!({"jobs": self.lending.take().ok_or("nothing is lent")?.end().await?})),
            "fallback" => {
                let (held, later) = (decoded::<Item>(&asked.held)?, decoded::<Message>(&asked.later)?);
                let last = asked.last.as_deref().map(read).transpose()?;
                let response = fallback::make_up(&read(&asked.request)?, &held, last.as_ref(), &later);
                Ok(json!({"response": written(&response)}))
            }
            "text" => {
                let text = match text_of_bytes(bytes_of(&asked.utf16)) {
                    Err(_) => return Ok(json!({"refused": true})),
                    Ok(text) => text,
                };
                let session = self.client()?.session("text", "text");
                session.ingest(IngestRequest { message: Some(user(text)), ..Default::default() }).await?;
                Ok(json!({"refused": false}))
            }
            "format" => format(&asked),
            "id" => Ok(json!({"id": new_id()})),
            op => Err(format!("unknown op {op}").into()),
        }
    }

    fn connect(&mut self, asked: Asked) -> Answer {
        *self = Self::default();
        let settings = asked.settings;
        let mut builder = Client::builder(asked.target).fallback(settings.fallback.unwrap_or(true));
        for (name, seconds) in settings.timeouts {
            builder = builder.timeout(name, Duration::from_secs_f64(seconds));
        }
        if let Some(token) = settings.token {
            builder = builder.token(token);
        }
        if let Some(seconds) = settings.retry_for {
            builder = builder.retry_for(Duration::from_secs_f64(seconds));
        }
        if settings.insecure {
            builder = builder.insecure();
        }
        builder = builder.breaker(settings.breaker);
        if let Some(messages) = settings.max_queued_messages {
            builder = builder.max_queued_messages(messages);
        }
        if let Some(bytes) = settings.max_queued_bytes {
            builder = builder.max_queued_bytes(bytes);
        }
        if let Some(path) = settings.spill_file {
            builder = builder.spill_file(path);
        }
        self.client = Some(builder.build()?);
        Ok(json!({}))
    }

    fn client(&self) -> Result<&Client, Failure> {
        self.client.as_ref().ok_or_else(|| "not connected".into())
    }

    fn handle(&mut self, asked: &Asked) -> Result<Session, Failure> {
        let session = asked.session.as_ref().ok_or("a session is needed")?;
        let (agent, id) = (session.agent_id.clone(), session.session_id.clone());
        let made = self.client()?.session(&agent, &id);
        Ok(self.handles.entry((agent, id)).or_insert(made).clone())
    }

    /// The handle, with what a call of it does while the service is away.
    fn choosing(&mut self, asked: &Asked) -> Result<Session, Failure> {
        let session = self.handle(asked)?;
        Ok(match asked.fallback {
            None => session,
            Some(true) => session.bearing(),
            Some(false) => session.failing(),
        })
    }

    async fn call(&self, asked: &Asked) -> Answer {
        let request = protocol::bytes(&asked.request)?;
        rpcs::call(self.client()?, &asked.rpc, &request).await
    }

    async fn together(&self, asked: &Asked) -> Answer {
        let request = protocol::bytes(&asked.request)?;
        let mut calls = JoinSet::new();
        for _ in 0..asked.count {
            let (client, rpc, request) = (self.client()?.clone(), asked.rpc.clone(), request.clone());
            calls.spawn(async move { rpcs::call(&client, &rpc, &request).await.unwrap_or_else(told) });
        }
        Ok(json!({"answers": calls.join_all().await}))
    }

    async fn session(&mut self, asked: Asked) -> Answer {
        let session = self.choosing(&asked)?;
        let request = asked.request.as_str();
        match asked.method.as_str() {
            "ingest" => responded(session.ingest(read(request)?).await),
            "ingest_batch" => responded(session.ingest_batch(read(request)?).await),
            "after_turn" => responded(session.after_turn(read(request)?).await),
            "report_usage" => responded(session.report_usage(read(request)?).await),
            "bootstrap" => responded(session.call(read::<BootstrapRequest>(request)?).await),
            "compact" => responded(session.compact(read(request)?).await),
            "should_compact" => responded(session.call(read::<ShouldCompactRequest>(request)?).await),
            "commit_compaction" => responded(session.call(read::<CommitCompactionRequest>(request)?).await),
            "maintain" => responded(session.call(read::<MaintainRequest>(request)?).await),
            "update_model" => responded(session.call(read::<UpdateModelRequest>(request)?).await),
            "status" => responded(session.call(read::<GetStatusRequest>(request)?).await),
            "list_tools" => responded(session.call(read::<ListToolsRequest>(request)?).await),
            "call_tool" => responded(session.call(read::<CallToolRequest>(request)?).await),
            "prepare_subagent" => responded(session.prepare_subagent(read(request)?).await),
            "rollback_subagent" => {
                let given: RollbackSubagentSpawnRequest = read(request)?;
                responded(session.rollback_subagent(given.spawn_token).await)
            }
            "end_as_subagent" => responded(session.end_as_subagent(read(request)?).await),
            "end" => responded(session.end(read(request)?).await),
            "dispose" => responded(session.call(read::<DisposeSessionRequest>(request)?).await),
            "delete" => responded(session.delete(read(request)?).await),
            "reset" => responded(session.reset(read(request)?).await),
            "record_host_change" => responded(session.record_host_change(read(request)?).await),
            method => Err(format!("unknown method {method}").into()),
        }
    }
}

/// The span of a W3C context.
fn span_of(parent: &str, state: &str) -> Result<SpanContext, Failure> {
    let [_, trace, span, flags] = parent.split('-').collect::<Vec<_>>()[..] else {
        return Err("traceparent has four fields".into());
    };
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16)?);
    let state = TraceState::from_str(state)?;
    Ok(SpanContext::new(TraceId::from_hex(trace)?, SpanId::from_hex(span)?, flags, true, state))
}

/// A request that says a conversation, in the members of its format.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Conversation {
    #[serde(skip_serializing)]
    system: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<Box<RawValue>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Vec<Box<RawValue>>>,
}

fn format(asked: &Asked) -> Answer {
    let name = asked.format.as_str();
    if let Some(out) = &asked.out {
        let messages = decoded::<Message>(out)?;
        let json = match name {
            ANTHROPIC_MESSAGES => serde_json::to_string(&to_anthropic(&messages))?,
            OPENAI_RESPONSES => {
                let input = Some(to_responses(&messages));
                serde_json::to_string(&Conversation { input, ..Default::default() })?
            }
            _ => {
                let messages = Some(to_openai(&messages));
                serde_json::to_string(&Conversation { messages, ..Default::default() })?
            }
        };
        return Ok(json!({ "json": json }));
    }
    let given: Conversation = serde_json::from_str(&asked.given)?;
    let said = given.messages.unwrap_or_default();
    let messages = match name {
        ANTHROPIC_MESSAGES => from_anthropic(&said, given.system.as_deref())?,
        OPENAI_RESPONSES => from_responses(&given.input.unwrap_or_default())?,
        _ => from_openai(&said)?,
    };
    Ok(json!({"messages": encoded(&messages)}))
}

/// The bytes of code units; one without a partner becomes bytes that are no UTF-8.
fn bytes_of(units: &[u16]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for unit in char::decode_utf16(units.iter().copied()) {
        match unit {
            Ok(char) => bytes.extend(char.encode_utf8(&mut [0; 4]).bytes()),
            Err(error) => {
                let [high, low] = error.unpaired_surrogate().to_be_bytes();
                bytes.extend([0xe0 | high >> 4, 0x80 | (high << 2 & 0x3c) | low >> 6, 0x80 | low & 0x3f]);
            }
        }
    }
    bytes
}
