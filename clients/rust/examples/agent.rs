//! An agent's loop against a model that is made up: it calls one tool, then answers.
//!
//! ```text
//! cargo run --example agent 127.0.0.1:50051
//! ```

use std::error::Error;

use contextengine::types::{AfterTurnRequest, AssembleRequest, Message, Role, ToolCallPart};
use contextengine::{Client, DEFAULT_TARGET, Session, assistant, new_id, text_of, tool_call, tool_result, user};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let target = std::env::args().nth(1).unwrap_or_else(|| DEFAULT_TARGET.into());
    let client = Client::new(target)?;
    let session = client.session("example", new_id());
    for question in ["Where is order 4711?", "And order 4712?"] {
        turn(&session, question).await?;
    }
    Ok(())
}

async fn turn(session: &Session, question: &str) -> Result<(), contextengine::Error> {
    let mut ingest = vec![user(question)];
    loop {
        let assembly = session.assemble(AssembleRequest { ingest, ..Default::default() }).await?;
        if let Some(degraded) = &assembly.degraded {
            println!("the service is away: {}", degraded.reason);
        }
        let (reply, calls) = model(assembly.messages());
        if calls.is_empty() {
            println!("{}", text_of(&reply));
            session.after_turn(AfterTurnRequest { messages: vec![reply], ..Default::default() }).await?;
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
