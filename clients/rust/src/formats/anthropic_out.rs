//! Anthropic Messages, out.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use serde_json::value::RawValue;

use super::anthropic::ANTHROPIC_MESSAGES;
use super::json::{Members, Value, get, members_of, object};
use crate::types::part::Kind;
use crate::types::{Message, Part, Role};
use crate::types::{file_part, image_part};

/// The part of a Messages request that says the conversation.
#[derive(Clone, Debug, Serialize)]
pub struct AnthropicRequest {
    /// The leading instructions, as blocks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub system: Vec<Box<RawValue>>,
    /// What was said.
    pub messages: Vec<Box<RawValue>>,
}

/// The conversation as a Messages request says it. What came from Anthropic comes back with its role and content as they were.
/// Leading instructions become `system`, later ones a user's text, unless they came as such and may stand where they do. Tool
/// results are a user's; those that follow each other share a message, as the API wants the results of parallel calls, unless
/// they came from Anthropic apart. What the format cannot say is left out, and a message of nothing else with it.
pub fn to_anthropic<'a>(messages: impl IntoIterator<Item = &'a Message>) -> AnthropicRequest {
    let mut system = Vec::new();
    let mut turns: Vec<(&str, Value)> = Vec::new();
    let (mut answers, mut made) = (false, true);
    for message in messages {
        let Some(content) = content_of(message) else { continue };
        let instructs = matches!(message.role(), Role::System | Role::Developer);
        let among = instructs && came_among(message);
        let (before, own) = (answers, made);
        answers = has_results(message);
        made = message.native.as_ref().is_none_or(|native| native.format != ANTHROPIC_MESSAGES);
        match (turns.last_mut(), content) {
            (None, Value::List(blocks)) if instructs && !among => system.extend(blocks.iter().map(Value::written)),
            (Some((_, Value::List(earlier))), Value::List(blocks)) if before && answers && (own || made) => {
                earlier.extend(blocks);
                // The API wants results before all else (Anthropic, Handle tool calls).
                earlier.sort_by_key(|block| !is_result(block));
                made = true;
            }
            (_, content) => {
                let role = match message.role() {
                    Role::Assistant => "assistant",
                    _ if among => "system",
                    _ => "user",
                };
                turns.push((role, content));
            }
        }
    }
    AnthropicRequest { system, messages: placed(turns) }
}

/// Whether a message answers calls. A model's own may hold what its provider's tools found.
pub(super) fn has_results(message: &Message) -> bool {
    !matches!(message.role(), Role::Assistant | Role::System | Role::Developer)
        && message.parts.iter().any(|part| matches!(part.kind, Some(Kind::ToolResult(_))))
}

fn is_result(block: &Value) -> bool {
    matches!(block, Value::Object(members) if matches!(get(members, "type"), Some(Value::Text(kind)) if kind == "tool_result"))
}

/// Messages, written. One of `system` is the user's where the API does not take it: it may stand behind the user's, and before
/// the model's or last (Anthropic, mid-conversation system messages, Limitations).
fn placed(turns: Vec<(&str, Value)>) -> Vec<Box<RawValue>> {
    let roles: Vec<&str> = turns.iter().map(|(role, _)| *role).collect();
    let mut before = "";
    let mut written = Vec::new();
    for (at, (mut role, content)) in turns.into_iter().enumerate() {
        let after = roles.get(at + 1).copied().unwrap_or("assistant");
        if role == "system" && (before != "user" || after != "assistant") {
            role = "user";
        }
        before = role;
        written.push(Value::Object(object([("role", Value::text(role)), ("content", content)])).written());
    }
    written
}

/// Whether instructions came as a message of their own, and not before all messages.
fn came_among(message: &Message) -> bool {
    let native = message.native.as_ref().filter(|native| native.format == ANTHROPIC_MESSAGES);
    native.is_some_and(|native| matches!(Value::read(&native.json), Ok(Value::Object(_))))
}

/// None: nothing that the format could say.
fn content_of(message: &Message) -> Option<Value> {
    let native = message.native.as_ref().filter(|native| native.format == ANTHROPIC_MESSAGES);
    let content = match native.and_then(|native| Value::read(&native.json).ok()) {
        Some(Value::Text(text)) => Value::List(vec![text_block(text)]),
        // The blocks of instructions; else the messages that a reply came in.
        Some(Value::List(blocks)) if matches!(message.role(), Role::System | Role::Developer) => Value::List(blocks),
        Some(Value::Object(members)) => get(&members, "content").cloned()?,
        Some(Value::List(_) | Value::Raw(_)) | None => Value::List(blocks_of(&message.parts)),
    };
    let is_empty = match &content {
        Value::Text(text) => text.is_empty(),
        Value::List(blocks) => blocks.is_empty(),
        _ => false,
    };
    (!is_empty).then_some(content)
}

fn blocks_of(parts: &[Part]) -> Vec<Value> {
    parts.iter().filter_map(block_of).collect()
}

fn text_block(text: impl Into<String>) -> Value {
    Value::Object(object([("type", Value::text("text")), ("text", Value::text(text))]))
}

fn block_of(part: &Part) -> Option<Value> {
    let mut block = match part.kind.as_ref()? {
        // The API refuses empty texts.
        Kind::Text(part) if part.text.is_empty() => return None,
        Kind::Text(part) => object([("type", Value::text("text")), ("text", Value::text(&part.text))]),
        Kind::Reasoning(reasoning) if !reasoning.redacted_data.is_empty() => {
            object([("type", Value::text("redacted_thinking")), ("data", lossy(&reasoning.redacted_data))])
        }
        Kind::Reasoning(reasoning) if !reasoning.signature.is_empty() => object([
            ("type", Value::text("thinking")),
            ("thinking", Value::text(&reasoning.text)),
            ("signature", lossy(&reasoning.signature)),
        ]),
        Kind::ToolCall(call) => object([
            ("type", Value::text("tool_use")),
            ("id", Value::text(&call.call_id)),
            ("name", Value::text(&call.name)),
            ("input", Value::Object(input_of(&call.arguments_json))),
        ]),
        Kind::ToolResult(result) => {
            let mut block =
                object([("type", Value::text("tool_result")), ("tool_use_id", Value::text(&result.call_id))]);
            let content = blocks_of(&result.parts);
            if !content.is_empty() {
                block.push(("content".into(), Value::List(content)));
            }
            if result.is_error {
                block.push(("is_error".into(), Value::truth()));
            }
            block
        }
        Kind::Image(part) => {
            let source = match &part.source {
                Some(image_part::Source::Data(data)) => source_here(&part.mime_type, data),
                Some(image_part::Source::Uri(uri)) => source_at(uri),
                None => source_at(""),
            };
            object([("type", Value::text("image")), ("source", source)])
        }
        Kind::File(part) => {
            let source = match &part.source {
                Some(file_part::Source::Data(data)) => source_here(&part.mime_type, data),
                Some(file_part::Source::Uri(uri)) => source_at(uri),
                None => source_at(""),
            };
            let mut block = object([("type", Value::text("document")), ("source", source)]);
            if !part.name.is_empty() {
                block.push(("title".into(), Value::text(&part.name)));
            }
            block
        }
        Kind::Opaque(opaque) if opaque.format == ANTHROPIC_MESSAGES => return Value::raw(&opaque.json),
        Kind::Reasoning(_) | Kind::Opaque(_) => return None,
    };
    block.extend(members_of(&part.provider_metadata_json));
    Some(Value::Object(block))
}

/// The arguments as the object that the API insists on; what is none stands under `arguments`.
fn input_of(arguments: &[u8]) -> Members {
    if arguments.is_empty() {
        return Members::new();
    }
    match Value::read(arguments) {
        Ok(Value::Object(members)) => members,
        Ok(other) => object([("arguments", other)]),
        Err(_) => object([("arguments", lossy(arguments))]),
    }
}

fn source_here(mime_type: &str, data: &[u8]) -> Value {
    let (kind, data) = match mime_type {
        "text/plain" => ("text", lossy(data)),
        _ => ("base64", Value::Text(BASE64_STANDARD.encode(data))),
    };
    Value::Object(object([("type", Value::text(kind)), ("media_type", Value::text(mime_type)), ("data", data)]))
}

fn source_at(url: &str) -> Value {
    Value::Object(object([("type", Value::text("url")), ("url", Value::text(url))]))
}

fn lossy(text: &[u8]) -> Value {
    Value::text(String::from_utf8_lossy(text))
}
