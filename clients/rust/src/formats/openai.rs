//! OpenAI Chat Completions, in.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::value::RawValue;

use super::json::{Node, Value, object};
use super::{FormatError, opaque};
use crate::messages::{text, tool_call};
use crate::types::part::Kind;
use crate::types::{FilePart, ImagePart, Message, Native, Part, ReasoningPart, Role, ToolResultPart};
use crate::types::{file_part, image_part};

/// The name of OpenAI Chat Completions in `native`.
pub const OPENAI_CHAT: &str = "openai.chat";

/// The messages of those of a Chat Completions request, each with its original in `native`. They have no ids: see
/// [`fill_messages`](crate::fill_messages).
///
/// ```
/// use contextengine::formats::{RawValue, from_openai};
///
/// let request = r#"[{"role": "user", "content": "Where is my order?"}]"#;
/// let messages: Vec<Box<RawValue>> = serde_json::from_str(request)?;
/// assert_eq!(contextengine::text_of(&from_openai(&messages)?[0]), "Where is my order?");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn from_openai(messages: &[Box<RawValue>]) -> Result<Vec<Message>, FormatError> {
    let read = messages.iter().enumerate().map(|(index, raw)| {
        let json = raw.get().as_bytes();
        let mut message = message_of(&Node::read(json, format!("messages[{index}]"))?)?;
        message.native = Some(Native { format: OPENAI_CHAT.into(), json: json.into() });
        Ok(message)
    });
    read.collect()
}

fn message_of(node: &Node) -> Result<Message, FormatError> {
    let role = match node.required("role")?.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        "system" => Role::System,
        "developer" => Role::Developer,
        _ => return Err(node.wrong("role", "one of user, assistant, tool, system, developer is needed")),
    };
    let content = match node.get("content") {
        Some(Value::Text(content)) => vec![text(content)],
        _ => node.children("content")?.iter().map(part_of).collect::<Result<_, _>>()?,
    };
    if role == Role::Tool {
        let (call_id, name) = (node.required("tool_call_id")?, node.text("name")?);
        let result = Kind::ToolResult(ToolResultPart { call_id, name, parts: content, ..Default::default() });
        return Ok(Message { role: role.into(), parts: vec![result.into()], ..Default::default() });
    }
    let mut parts = Vec::new();
    let reasoning = node.text("reasoning_content")?;
    if !reasoning.is_empty() {
        parts.push(Kind::Reasoning(ReasoningPart { text: reasoning, ..Default::default() }).into());
    }
    parts.extend(content);
    let refusal = node.text("refusal")?;
    if !refusal.is_empty() {
        let said = object([("type", Value::text("refusal")), ("refusal", Value::Text(refusal))]);
        parts.push(opaque(OPENAI_CHAT, "refusal".into(), Value::Object(said).to_bytes()));
    }
    for call in node.children("tool_calls")? {
        parts.push(call_of(&call)?);
    }
    Ok(Message { role: role.into(), name: node.text("name")?, parts, ..Default::default() })
}

fn part_of(node: &Node) -> Result<Part, FormatError> {
    let kind = node.required("type")?;
    let (image, file) = (node.child("image_url")?, node.child("file")?);
    let (kind, rest) = match (kind.as_str(), image, file) {
        ("text", ..) => {
            let part = text(node.text("text")?);
            return Ok(Part { provider_metadata_json: node.rest(&["type", "text"]), ..part });
        }
        ("image_url", Some(image), _) => {
            let url = image.required("url")?;
            let (mime_type, source) = match data_of(&url) {
                Some((mime_type, data)) => (mime_type, image_part::Source::Data(data)),
                None => (String::new(), image_part::Source::Uri(url)),
            };
            let part =
                ImagePart { mime_type, source: Some(source), detail: image.text("detail")?, ..Default::default() };
            (Kind::Image(part), node.rest(&["type", "image_url"]))
        }
        ("file", _, Some(file)) => {
            let (mime_type, source) = match data_of(&file.text("file_data")?) {
                Some((mime_type, data)) => (mime_type, file_part::Source::Data(data)),
                None => (String::new(), file_part::Source::Uri(file.text("file_id")?)),
            };
            let part = FilePart { mime_type, source: Some(source), name: file.text("filename")?, ..Default::default() };
            (Kind::File(part), node.rest(&["type", "file"]))
        }
        _ => return Ok(opaque(OPENAI_CHAT, kind, Value::Object(node.members.clone()).to_bytes())),
    };
    Ok(Part { provider_metadata_json: rest, ..kind.into() })
}

/// A tool call. A custom tool's input is text of any kind, and stands where arguments stand.
fn call_of(node: &Node) -> Result<Part, FormatError> {
    let (body, key) = match (node.child("custom")?, node.child("function")?) {
        (Some(custom), _) => (custom, "input"),
        (None, Some(function)) => (function, "arguments"),
        (None, None) => return Err(node.wrong("function", "an object is needed")),
    };
    let arguments = match body.get(key) {
        Some(Value::Text(text)) => text.clone().into_bytes(),
        Some(given) => given.to_bytes(),
        None => b"{}".to_vec(),
    };
    let call = tool_call(node.required("id")?, body.required("name")?, arguments);
    let mut known = vec!["id", "function", "custom"];
    if matches!(node.text("type")?.as_str(), "" | "function") {
        known.push("type");
    }
    Ok(Part { provider_metadata_json: node.rest(&known), ..Kind::ToolCall(call).into() })
}

/// The type and the bytes of a `data:` URL. None: it is another one.
pub(super) fn data_of(url: &str) -> Option<(String, Vec<u8>)> {
    let (mime_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some((mime_type.into(), BASE64_STANDARD.decode(data).ok()?))
}
