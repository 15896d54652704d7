//! An agent's loop against a model that is made up: it calls one tool, then answers.
//!
//! ```text
//! cargo run --example agent -- [ADDRESS [SESSION [QUESTION ...]]]
//! ```
//!
//! Without a session it begins one; without questions it asks two of its own. Where OTEL_EXPORTER_OTLP_ENDPOINT is set, each
//! turn is a trace that goes there.

mod tracing;

use std::error::Error;

use contextengine::types::{AfterTurnRequest, AssembleRequest, Message, Role, ToolCallPart};
use contextengine::{Client, DEFAULT_TARGET, Session, assistant, new_id, text_of, tool_call, tool_result, user};

use crate::tracing::{start_tracing, traced, traced_call};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let target = arguments.next().unwrap_or_else(|| DEFAULT_TARGET.into());
    let session_id = arguments.next().unwrap_or_else(new_id);
    let mut questions: Vec<_> = arguments.collect();
    if questions.is_empty() {
        questions = vec!["Where is order 4711?".into(), "And order 4712?".into()];
    }
    let tracing = start_tracing()?;
    let client = Client::new(target)?;
    let session = client.session("example", session_id);
    for question in questions {
        traced("invoke_agent example", turn(&session, &question)).await?;
    }
    if let Some(provider) = tracing {
        // It waits for the last spans to be sent, which this runtime does.
        tokio::task::spawn_blocking(move || provider.shutdown()).await??;
    }
    Ok(())
}

async fn turn(session: &Session, question: &str) -> Result<(), contextengine::Error> {
    let mut ingest = vec![user(question)];
    loop {
        let asked = AssembleRequest { ingest, ..Default::default() };
        let assembly = traced_call("Assemble", session.assemble(asked)).await?;
        if let Some(degraded) = &assembly.degraded {
            println!("the service is away: {}", degraded.reason);
        }
        let (reply, calls) = model(assembly.messages());
        if calls.is_empty() {
            println!("{}", text_of(&reply));
            let done = AfterTurnRequest { messages: vec![reply], ..Default::default() };
            traced_call("AfterTurn", session.after_turn(done)).await?;
            return Ok(());
        }
        ingest = vec![reply];
        ingest.extend(calls.iter().map(|call| tool_result(&call.call_id, "in Utrecht, due tomorrow")));
    }
}

/// Stands in for a provider: it asks for the tool once a question, then answers with what the tool said.
fn model<'a>(mut messages: impl DoubleEndedIterator<Item = &'a Message>) -> (Message, Vec<ToolCallPart>) {
    let last = messages.next_back().expect("the question is there");
    let said = text_of(last);
    if last.role() == Role::Tool {
        return (assistant(format!("It is {said}."), []), Vec::new());
    }
    let order = said.rsplit(' ').next().unwrap_or_default().trim_end_matches('?');
    let call = tool_call(format!("call-{order}"), "find_order", format!(r#"{{"order": "{order}"}}"#));
    (assistant("", [call.clone()]), vec![call])
}
