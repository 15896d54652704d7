//! OpenAI Chat Completions, out.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::value::RawValue;

use super::anthropic_out::has_results;
use super::json::{Members, Value, get, members_of, object};
use super::openai::OPENAI_CHAT;
use crate::types::part::Kind;
use crate::types::{Message, OpaquePart, Part, Role, ToolCallPart, ToolResultPart};
use crate::types::{file_part, image_part};

/// The messages of a Chat Completions request. What came from OpenAI comes back as it was; what the format cannot say is left
/// out. A tool message with several results becomes several. What is said beside some of a step's results stands behind them all:
/// the API wants them directly behind the calls.
pub fn to_openai<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<Box<RawValue>> {
    let mut written = Vec::new();
    let mut beside = Vec::new();
    for message in messages {
        if !has_results(message) {
            written.append(&mut beside);
        }
        if let Some(Value::Raw(native)) = native_of(message) {
            written.push(native);
            continue;
        }
        let mut others = Vec::new();
        for part in &message.parts {
            match &part.kind {
                Some(Kind::ToolResult(result)) => written.push(Value::Object(result_of(result)).written()),
                _ => others.push(part),
            }
        }
        if !others.is_empty() || message.parts.is_empty() {
            let said = Value::Object(message_of(message, &others)).written();
            if has_results(message) { beside.push(said) } else { written.push(said) }
        }
    }
    written.append(&mut beside);
    written
}

fn native_of(message: &Message) -> Option<Value> {
    let native = message.native.as_ref().filter(|native| native.format == OPENAI_CHAT)?;
    Value::raw(&native.json)
}

fn result_of(result: &ToolResultPart) -> Members {
    let mut written = object([("role", Value::text("tool")), ("tool_call_id", Value::text(&result.call_id))]);
    add_text(&mut written, "name", &result.name);
    written.push(("content".into(), content_of(&result.parts).unwrap_or_else(|| Value::text(""))));
    written
}

fn message_of(message: &Message, parts: &[&Part]) -> Members {
    let role = match message.role() {
        Role::Assistant => "assistant",
        Role::Tool => "tool",
        Role::System => "system",
        Role::Developer => "developer",
        // Roles of a harness's own are a user's to the model.
        Role::User | Role::Custom | Role::Unspecified => "user",
    };
    let mut written = object([("role", Value::text(role))]);
    add_text(&mut written, "name", &message.name);
    let nothing = || if role == "assistant" { Value::null() } else { Value::text("") };
    written.push(("content".into(), content_of(parts.iter().copied()).unwrap_or_else(nothing)));
    let mut calls = Vec::new();
    for part in parts {
        match &part.kind {
            Some(Kind::Opaque(opaque)) if is_refusal(opaque) => {
                let said = get(&members_of(&opaque.json), "refusal").cloned();
                written.push(("refusal".into(), said.unwrap_or_else(Value::null)));
            }
            Some(Kind::ToolCall(call)) => {
                calls.push(Value::Object(call_of(call, &part.provider_metadata_json)));
            }
            _ => {}
        }
    }
    if !calls.is_empty() {
        written.push(("tool_calls".into(), Value::List(calls)));
    }
    written
}

/// One plain text as a string, anything else as a list. None: nothing.
fn content_of<'a>(parts: impl IntoIterator<Item = &'a Part>) -> Option<Value> {
    let mut pieces: Vec<_> = parts.into_iter().filter_map(part_of).collect();
    if let [Value::Object(only)] = pieces.as_mut_slice()
        && let [(_, Value::Text(kind)), (_, text)] = only.as_mut_slice()
        && kind == "text"
    {
        return Some(text.clone());
    }
    (!pieces.is_empty()).then_some(Value::List(pieces))
}

fn part_of(part: &Part) -> Option<Value> {
    let mut written = match part.kind.as_ref()? {
        Kind::Text(part) => object([("type", Value::text("text")), ("text", Value::text(&part.text))]),
        Kind::Image(part) => {
            let url = match &part.source {
                Some(image_part::Source::Data(data)) => data_url(&part.mime_type, data),
                Some(image_part::Source::Uri(uri)) => uri.clone(),
                None => String::new(),
            };
            let mut image = object([("url", Value::Text(url))]);
            add_text(&mut image, "detail", &part.detail);
            object([("type", Value::text("image_url")), ("image_url", Value::Object(image))])
        }
        Kind::File(part) => {
            let mut file = Members::new();
            add_text(&mut file, "filename", &part.name);
            file.extend(match &part.source {
                Some(file_part::Source::Data(data)) if !data.is_empty() => {
                    object([("file_data", Value::Text(data_url(&part.mime_type, data)))])
                }
                Some(file_part::Source::Uri(uri)) => object([("file_id", Value::text(uri))]),
                _ => object([("file_id", Value::text(""))]),
            });
            object([("type", Value::text("file")), ("file", Value::Object(file))])
        }
        Kind::Opaque(opaque) if opaque.format == OPENAI_CHAT && !is_refusal(opaque) => {
            return Value::raw(&opaque.json);
        }
        _ => return None,
    };
    written.extend(members_of(&part.provider_metadata_json));
    Some(Value::Object(written))
}

fn call_of(call: &ToolCallPart, metadata: &[u8]) -> Members {
    let arguments = String::from_utf8_lossy(&call.arguments_json);
    let more = members_of(metadata);
    let is_custom = matches!(get(&more, "type"), Some(Value::Text(kind)) if kind == "custom");
    let key = if is_custom { "input" } else { "arguments" };
    let body = Value::Object(object([("name", Value::text(&call.name)), (key, Value::text(arguments))]));
    let mut written = object([("id", Value::text(&call.call_id))]);
    if is_custom {
        written.push(("custom".into(), body));
    } else {
        written.extend(object([("type", Value::text("function")), ("function", body)]));
    }
    written.extend(more);
    written
}

fn is_refusal(part: &OpaquePart) -> bool {
    part.format == OPENAI_CHAT && part.r#type == "refusal"
}

pub(super) fn data_url(mime_type: &str, data: &[u8]) -> String {
    format!("data:{mime_type};base64,{}", BASE64_STANDARD.encode(data))
}

/// Adds a member where its text is not empty.
pub(super) fn add_text(members: &mut Members, key: &str, text: &str) {
    if !text.is_empty() {
        members.push((key.into(), Value::text(text)));
    }
}
