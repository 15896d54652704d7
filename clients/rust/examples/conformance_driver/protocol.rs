//! What is asked and answered: JSON, in which messages of the API are base64.

use std::collections::HashMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use contextengine::{Error, code_name};
use prost::Message;
use serde::Deserialize;
use serde_json::{Value, json};

/// Why there is no answer: an error of the client, or a defect.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A line that was read.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Asked {
    pub op: String,
    pub target: String,
    pub settings: Settings,
    pub session: Option<Handle>,
    pub rpc: String,
    pub traceparent: String,
    pub tracestate: String,
    pub method: String,
    pub request: String,
    pub delta: Option<bool>,
    pub fallback: Option<bool>,
    pub host_messages: Option<Vec<String>>,
    pub messages: Vec<String>,
    pub held: Vec<String>,
    pub last: Option<String>,
    pub later: Vec<String>,
    pub utf16: Vec<u16>,
    pub format: String,
    #[serde(rename = "in")]
    pub given: String,
    pub out: Option<Vec<String>>,
    pub resume_position: String,
    pub count: usize,
    pub hello: String,
    pub text: String,
    pub delay: f64,
    pub failures: usize,
}

/// The settings of a client.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Settings {
    pub timeouts: HashMap<String, f64>,
    pub retry_for: Option<f64>,
    pub token: Option<String>,
    pub insecure: bool,
    pub fallback: Option<bool>,
    pub breaker: bool,
    pub max_queued_messages: Option<usize>,
    pub max_queued_bytes: Option<usize>,
    pub spill_file: Option<String>,
}

/// What names a session.
#[derive(Deserialize)]
pub struct Handle {
    pub agent_id: String,
    pub session_id: String,
}

/// The answer that a failure is.
pub fn told(failure: Failure) -> Value {
    let Some(error) = failure.downcast_ref::<Error>() else {
        return json!({"defect": failure.to_string()});
    };
    let violations = error.violations().iter();
    let violations: Vec<_> =
        violations.map(|one| json!({"field": one.field, "description": one.description})).collect();
    json!({"error": {
        "type": format!("{:?}", error.kind()),
        "reason": error.reason(),
        "code": code_name(error.code()),
        "message": error.message(),
        "violations": violations,
        "metadata": error.metadata(),
        "retry_after": error.retry_after().map(|after| after.as_secs_f64()),
    }})
}

/// The answer that a reply is.
pub fn responded(reply: Result<impl Message, Error>) -> Result<Value, Failure> {
    Ok(json!({"response": written(&reply?)}))
}

pub fn bytes(encoded: &str) -> Result<Vec<u8>, Failure> {
    Ok(BASE64_STANDARD.decode(encoded)?)
}

pub fn read<M: Message + Default>(encoded: &str) -> Result<M, Failure> {
    Ok(M::decode(bytes(encoded)?.as_slice())?)
}

pub fn written(message: &impl Message) -> String {
    BASE64_STANDARD.encode(message.encode_to_vec())
}

pub fn encoded<'a, M: Message + 'a>(messages: impl IntoIterator<Item = &'a M>) -> Vec<String> {
    messages.into_iter().map(written).collect()
}

pub fn decoded<M: Message + Default>(all: &[String]) -> Result<Vec<M>, Failure> {
    all.iter().map(|encoded| read(encoded)).collect()
}
