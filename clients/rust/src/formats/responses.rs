//! OpenAI Responses, in.

use serde_json::value::RawValue;

use super::json::{Node, Value};
use super::openai::data_of;
use super::{FormatError, opaque};
use crate::messages::text;
use crate::types::part::Kind;
use crate::types::{FilePart, ImagePart, Message, Native, Part, ReasoningPart, Role, ToolCallPart, ToolResultPart};
use crate::types::{file_part, image_part};

/// The name of OpenAI Responses in `native`.
pub const OPENAI_RESPONSES: &str = "openai.responses";

/// The messages of the input items of a Responses request. Items that one reply of the model is made of (reasoning, then its
/// text, then its calls) become one; its `native` is the list of them, each as it was. They have no ids: see
/// [`fill_messages`](crate::fill_messages).
pub fn from_responses(items: &[Box<RawValue>]) -> Result<Vec<Message>, FormatError> {
    let mut read: Vec<(Message, Vec<&str>)> = Vec::new();
    for (index, raw) in items.iter().enumerate() {
        let message = message_of(&Node::read(raw.get().as_bytes(), format!("input[{index}]"))?)?;
        match read.last_mut() {
            Some((before, natives)) if goes_on(before, &message) => {
                before.parts.extend(message.parts);
                natives.push(raw.get());
            }
            _ => read.push((message, vec![raw.get()])),
        }
    }
    let with_native = |(message, natives): (Message, Vec<&str>)| {
        let json = match natives.as_slice() {
            [only] => (*only).to_owned(),
            several => format!("[{}]", several.join(",")),
        };
        let native = Native { format: OPENAI_RESPONSES.into(), json: json.into_bytes() };
        Message { native: Some(native), ..message }
    };
    Ok(read.into_iter().map(with_native).collect())
}

/// Whether an item belongs to the reply that has begun: calls go on with anything but an answer, text with reasoning only.
fn goes_on(before: &Message, message: &Message) -> bool {
    let are_replies = before.role() == Role::Assistant && message.role() == Role::Assistant;
    let Some(first) = message.parts.first().filter(|_| are_replies && !before.parts.is_empty()) else { return false };
    let mut kinds = before.parts.iter().map(|part| &part.kind);
    matches!(first.kind, Some(Kind::ToolCall(_))) || kinds.all(|kind| matches!(kind, Some(Kind::Reasoning(_))))
}

fn message_of(node: &Node) -> Result<Message, FormatError> {
    let kind = node.text("type")?;
    let (role, parts) = match kind.as_str() {
        "" | "message" => {
            let role = role_of(&node.required("role")?);
            let wrong = || node.wrong("role", "one of user, assistant, system, developer is needed");
            (role.ok_or_else(wrong)?, content_of(node, "content")?)
        }
        "reasoning" => (Role::Assistant, vec![reasoning_of(node)?]),
        "function_call" => (Role::Assistant, vec![call_of(node, "arguments")?]),
        "custom_tool_call" => (Role::Assistant, vec![call_of(node, "input")?]),
        "function_call_output" | "custom_tool_call_output" => {
            let (call_id, parts) = (node.required("call_id")?, content_of(node, "output")?);
            let result = Kind::ToolResult(ToolResultPart { call_id, parts, ..Default::default() });
            let provider_metadata_json = node.rest(&["type", "call_id", "output", "id", "status"]);
            (Role::Tool, vec![Part { provider_metadata_json, ..result.into() }])
        }
        _ => (whose(node, &kind)?, vec![unknown(node, kind)]),
    };
    Ok(Message { role: role.into(), parts, ..Default::default() })
}

fn role_of(name: &str) -> Option<Role> {
    match name {
        "user" => Some(Role::User),
        "assistant" => Some(Role::Assistant),
        "system" => Some(Role::System),
        "developer" => Some(Role::Developer),
        _ => None,
    }
}

/// Who an item of a kind that is not known here is from: who it says, of what a host sets the developer, else the model.
fn whose(node: &Node, kind: &str) -> Result<Role, FormatError> {
    let otherwise = if kind == "configuration_update" { Role::Developer } else { Role::Assistant };
    Ok(role_of(&node.text("role")?).unwrap_or(otherwise))
}

fn unknown(node: &Node, kind: String) -> Part {
    opaque(OPENAI_RESPONSES, kind, Value::Object(node.members.clone()).to_bytes())
}

fn reasoning_of(node: &Node) -> Result<Part, FormatError> {
    let texts: Vec<_> = node.children("summary")?.iter().map(|one| one.text("text")).collect::<Result<_, _>>()?;
    let mut known = vec!["type", "id", "encrypted_content"];
    if texts.len() < 2 {
        // What several texts were joined of is kept beside them.
        known.push("summary");
    }
    let thought = ReasoningPart {
        text: texts.join("\n\n"),
        redacted_data: node.text("encrypted_content")?.into_bytes(),
        item_id: node.text("id")?,
        ..Default::default()
    };
    Ok(Part { provider_metadata_json: node.rest(&known), ..Kind::Reasoning(thought).into() })
}

/// A tool call. A custom tool's input is text of any kind, and stands where arguments stand.
fn call_of(node: &Node, given: &str) -> Result<Part, FormatError> {
    let call = ToolCallPart {
        call_id: node.required("call_id")?,
        name: node.required("name")?,
        arguments_json: node.text(given)?.into_bytes(),
        item_id: node.text("id")?,
        namespace: node.text("namespace")?,
    };
    let mut known = vec!["call_id", "name", given, "id", "namespace"];
    if given == "arguments" {
        known.push("type");
    }
    Ok(Part { provider_metadata_json: node.rest(&known), ..Kind::ToolCall(call).into() })
}

fn content_of(node: &Node, key: &str) -> Result<Vec<Part>, FormatError> {
    match node.get(key) {
        Some(Value::Text(content)) => Ok(vec![text(content)]),
        Some(Value::List(_)) => node.children(key)?.iter().map(piece_of).collect(),
        _ => Err(node.wrong(key, "a string or a list of parts is needed")),
    }
}

fn piece_of(node: &Node) -> Result<Part, FormatError> {
    let kind = node.required("type")?;
    let (kind, rest) = match kind.as_str() {
        "input_text" | "output_text" => {
            let part = text(node.text("text")?);
            return Ok(Part { provider_metadata_json: node.rest(&["type", "text"]), ..part });
        }
        "input_image" => {
            let (mime_type, source) = match held(node, "image_url")? {
                Some((mime_type, data)) => (mime_type, image_part::Source::Data(data)),
                None => (String::new(), image_part::Source::Uri(address(node, "image_url")?)),
            };
            let detail = node.text("detail")?;
            let part = ImagePart { mime_type, source: Some(source), detail, ..Default::default() };
            (Kind::Image(part), node.rest(&["type", "image_url", "file_id", "detail"]))
        }
        "input_file" => {
            let key = if node.text("file_data")?.is_empty() { "file_url" } else { "file_data" };
            let (mime_type, source) = match held(node, key)? {
                Some((mime_type, data)) => (mime_type, file_part::Source::Data(data)),
                None => (String::new(), file_part::Source::Uri(address(node, key)?)),
            };
            let name = node.text("filename")?;
            let part = FilePart { mime_type, source: Some(source), name, ..Default::default() };
            (Kind::File(part), node.rest(&["type", "file_data", "file_url", "file_id", "filename"]))
        }
        _ => return Ok(unknown(node, kind)),
    };
    Ok(Part { provider_metadata_json: rest, ..kind.into() })
}

/// The media type and bytes of a data URL. None: it is another one.
fn held(node: &Node, key: &str) -> Result<Option<(String, Vec<u8>)>, FormatError> {
    let url = node.text(key)?;
    match data_of(&url) {
        None if url.starts_with("data:") && url.contains(";base64,") => Err(node.wrong(key, "base64 is needed")),
        found => Ok(found),
    }
}

/// A medium's address, or its id with the provider.
fn address(node: &Node, key: &str) -> Result<String, FormatError> {
    let url = node.text(key)?;
    if url.is_empty() { node.text("file_id") } else { Ok(url) }
}
