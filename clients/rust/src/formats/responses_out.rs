//! OpenAI Responses, out.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::json::{Members, Value, get, members_of, object};
use super::openai_out::{add_text, data_url};
use super::responses::OPENAI_RESPONSES;
use crate::types::part::Kind;
use crate::types::{Message, Part, Role, ToolCallPart};
use crate::types::{file_part, image_part};

/// The input items of a Responses request. What came from Responses comes back as it was; what the format cannot say is left
/// out. A message becomes as many items as it has calls, results and stretches of text. Reasoning is left out where it has not
/// the id of an item of OpenAI's: nobody else's is taken.
pub fn to_responses<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<Box<RawValue>> {
    let mut items = Vec::new();
    // Calls so far whose arguments are no JSON.
    let mut custom = HashSet::new();
    for message in messages {
        for item in native_of(message).unwrap_or_else(|| items_of(message, &custom)) {
            if let Value::Object(members) = &item
                && let Some(Value::Text(kind)) = get(members, "type")
                && kind == "custom_tool_call"
                && let Some(Value::Text(call)) = get(members, "call_id")
            {
                custom.insert(call.clone());
            }
            items.push(item.written());
        }
    }
    items
}

fn native_of(message: &Message) -> Option<Vec<Value>> {
    let native = message.native.as_ref().filter(|native| native.format == OPENAI_RESPONSES)?;
    match Value::read(&native.json).ok()? {
        Value::List(items) => Some(items),
        item => Some(vec![item]),
    }
}

fn items_of(message: &Message, custom: &HashSet<String>) -> Vec<Value> {
    let role = match message.role() {
        Role::Assistant => "assistant",
        Role::System => "system",
        Role::Developer => "developer",
        // All other roles are a user's to the model.
        Role::User | Role::Tool | Role::Custom | Role::Unspecified => "user",
    };
    let (mut items, mut stretch) = (Vec::new(), Vec::new());
    for part in &message.parts {
        match item_of(part, custom) {
            Some(item) => {
                items.extend(said(role, &mut stretch));
                items.push(Value::Object(item));
            }
            None => stretch.extend(piece_of(part, role)),
        }
    }
    items.extend(said(role, &mut stretch));
    items
}

/// The item of a stretch of text, pictures and files; none where it holds nothing.
fn said(role: &str, stretch: &mut Vec<Value>) -> Option<Value> {
    let content = Value::List(std::mem::take(stretch));
    let is_empty = matches!(&content, Value::List(pieces) if pieces.is_empty());
    let item = object([("type", Value::text("message")), ("role", Value::text(role)), ("content", content)]);
    (!is_empty).then_some(Value::Object(item))
}

/// The item that a part is by itself. None: it belongs into a message, or nowhere.
fn item_of(part: &Part, custom: &HashSet<String>) -> Option<Members> {
    let item = match part.kind.as_ref()? {
        Kind::Reasoning(thought) if !thought.item_id.is_empty() => {
            let mut summary = Vec::new();
            if !thought.text.is_empty() {
                let text = object([("type", Value::text("summary_text")), ("text", Value::text(&thought.text))]);
                summary.push(Value::Object(text));
            }
            let mut item = object([
                ("type", Value::text("reasoning")),
                ("id", Value::text(&thought.item_id)),
                ("summary", Value::List(summary)),
            ]);
            add_text(&mut item, "encrypted_content", &String::from_utf8_lossy(&thought.redacted_data));
            item
        }
        Kind::ToolCall(call) => return Some(call_of(call, members_of(&part.provider_metadata_json))),
        Kind::ToolResult(result) => {
            let is_custom = custom.contains(&result.call_id);
            let kind = if is_custom { "custom_tool_call_output" } else { "function_call_output" };
            object([
                ("type", Value::text(kind)),
                ("call_id", Value::text(&result.call_id)),
                ("output", output_of(&result.parts)),
            ])
        }
        Kind::Opaque(opaque) if opaque.format == OPENAI_RESPONSES && !is_content(&opaque.r#type) => {
            return Some(members_of(&opaque.json));
        }
        _ => return None,
    };
    Some(with(item, members_of(&part.provider_metadata_json)))
}

fn call_of(call: &ToolCallPart, more: Members) -> Members {
    let kind = get(&more, "type");
    let is_custom = matches!(kind, Some(Value::Text(kind)) if kind == "custom_tool_call" || kind == "custom");
    let arguments = String::from_utf8_lossy(&call.arguments_json);
    let mut item = object([("call_id", Value::text(&call.call_id)), ("name", Value::text(&call.name))]);
    item.push(match arguments {
        arguments if is_custom => ("input".into(), Value::text(arguments)),
        arguments if arguments.is_empty() => ("arguments".into(), Value::text("{}")),
        arguments => ("arguments".into(), Value::text(arguments)),
    });
    add_text(&mut item, "id", &call.item_id);
    add_text(&mut item, "namespace", &call.namespace);
    let kind = if is_custom { "custom_tool_call" } else { "function_call" };
    with(with(item, more), object([("type", Value::text(kind))]))
}

/// The members with those of `more` in place of their own of the same name.
fn with(mut members: Members, more: Members) -> Members {
    members.retain(|(key, _)| !more.iter().any(|(given, _)| given == key));
    members.extend(more);
    members
}

/// Whether an opaque part stands within a message: a refusal does.
fn is_content(kind: &str) -> bool {
    matches!(kind, "refusal" | "input_audio")
}

/// A result as one text, or as a list where it holds more.
fn output_of(parts: &[Part]) -> Value {
    let mut pieces: Vec<_> = parts.iter().filter_map(|part| piece_of(part, "user")).collect();
    match pieces.as_mut_slice() {
        [] => Value::text(""),
        [Value::Object(only)] if only.len() == 2 && only[1].0 == "text" => only.remove(1).1,
        _ => Value::List(pieces),
    }
}

/// A part within a message. None: the format has no place for it.
fn piece_of(part: &Part, role: &str) -> Option<Value> {
    let piece = match part.kind.as_ref()? {
        Kind::Text(part) => {
            let kind = if role == "assistant" { "output_text" } else { "input_text" };
            object([("type", Value::text(kind)), ("text", Value::text(&part.text))])
        }
        Kind::Image(part) => {
            let url = match &part.source {
                Some(image_part::Source::Data(data)) => data_url(&part.mime_type, data),
                Some(image_part::Source::Uri(uri)) => uri.clone(),
                None => String::new(),
            };
            let mut piece =
                object([("type", Value::text("input_image")), (place_of(&url, "image_url"), Value::text(&url))]);
            add_text(&mut piece, "detail", &part.detail);
            piece
        }
        Kind::File(part) => {
            let (url, key) = match &part.source {
                Some(file_part::Source::Data(data)) => (data_url(&part.mime_type, data), "file_data"),
                Some(file_part::Source::Uri(uri)) => (uri.clone(), "file_url"),
                None => (String::new(), "file_url"),
            };
            let mut piece = object([("type", Value::text("input_file")), (place_of(&url, key), Value::text(&url))]);
            add_text(&mut piece, "filename", &part.name);
            piece
        }
        Kind::Opaque(opaque) if opaque.format == OPENAI_RESPONSES => return Value::raw(&opaque.json),
        _ => return None,
    };
    Some(Value::Object(with(piece, members_of(&part.provider_metadata_json))))
}

/// Where a medium's address stands: an id with the provider has a place of its own.
fn place_of<'a>(url: &str, key: &'a str) -> &'a str {
    if url.contains("://") || url.starts_with("data:") { key } else { "file_id" }
}
