//! Anthropic Messages, in.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::value::RawValue;

use super::json::{Node, Value, object};
use super::{FormatError, opaque};
use crate::messages::{text, tool_call};
use crate::types::part::Kind;
use crate::types::{FilePart, ImagePart, Message, Native, Part, ReasoningPart, Role, ToolResultPart, Usage};
use crate::types::{file_part, image_part};

/// The name of Anthropic Messages in `native`.
pub const ANTHROPIC_MESSAGES: &str = "anthropic.messages";

/// The messages of those of a Messages request, each with its original in `native`. `system`, a text or a list of blocks,
/// becomes a leading system message. A user message of tool results alone is a tool message. They have no ids: see
/// [`fill_messages`](crate::fill_messages).
pub fn from_anthropic(messages: &[Box<RawValue>], system: Option<&RawValue>) -> Result<Vec<Message>, FormatError> {
    let mut read = Vec::new();
    if let Some(system) = system {
        let value = Value::read(system.get().as_bytes())?;
        let parts = blocks_of(&Node::of(object([("system", value)]), "$"), "system")?;
        read.push(with_native(Message { role: Role::System.into(), parts, ..Default::default() }, system));
    }
    for (index, raw) in messages.iter().enumerate() {
        let node = Node::read(raw.get().as_bytes(), format!("messages[{index}]"))?;
        read.push(with_native(message_of(&node)?, raw));
    }
    Ok(read)
}

fn with_native(message: Message, raw: &RawValue) -> Message {
    let native = Native { format: ANTHROPIC_MESSAGES.into(), json: raw.get().into() };
    Message { native: Some(native), ..message }
}

fn message_of(node: &Node) -> Result<Message, FormatError> {
    let parts = blocks_of(node, "content")?;
    match node.required("role")?.as_str() {
        // A reply kept as the API gave it says more than a request may.
        "assistant" => Ok(Message {
            role: Role::Assistant.into(),
            api: "anthropic-messages".into(),
            id: node.text("id")?,
            model: node.text("model")?,
            stop_reason: node.text("stop_reason")?,
            usage: node.child("usage")?.as_ref().map(usage_of).transpose()?,
            parts,
            ..Default::default()
        }),
        "user" => {
            let mut kinds = parts.iter().map(|part| &part.kind);
            let is_tool = !parts.is_empty() && kinds.all(|kind| matches!(kind, Some(Kind::ToolResult(_))));
            let role = if is_tool { Role::Tool } else { Role::User };
            Ok(Message { role: role.into(), parts, ..Default::default() })
        }
        // Instructions that hold from there on stand among the messages.
        "system" => Ok(Message { role: Role::System.into(), parts, ..Default::default() }),
        _ => Err(node.wrong("role", "user, assistant or system is needed")),
    }
}

fn blocks_of(node: &Node, key: &str) -> Result<Vec<Part>, FormatError> {
    match node.get(key) {
        Some(Value::Text(content)) => Ok(vec![text(content)]),
        Some(Value::List(_)) => node.children(key)?.iter().map(block_of).collect(),
        _ => Err(node.wrong(key, "a string or a list of blocks is needed")),
    }
}

fn block_of(node: &Node) -> Result<Part, FormatError> {
    let kind = node.required("type")?;
    let (kind, known): (Kind, &[&str]) = match kind.as_str() {
        "text" => {
            let part = text(node.text("text")?);
            return Ok(Part { provider_metadata_json: node.rest(&["type", "text"]), ..part });
        }
        "thinking" => {
            let (text, signature) = (node.text("thinking")?, node.text("signature")?.into_bytes());
            let part = ReasoningPart { text, signature, ..Default::default() };
            (Kind::Reasoning(part), &["type", "thinking", "signature"])
        }
        "redacted_thinking" => {
            let redacted_data = node.required("data")?.into_bytes();
            (Kind::Reasoning(ReasoningPart { redacted_data, ..Default::default() }), &["type", "data"])
        }
        "tool_use" => {
            let input = node.get("input").map_or_else(|| b"{}".to_vec(), Value::to_bytes);
            let call = tool_call(node.required("id")?, node.required("name")?, input);
            (Kind::ToolCall(call), &["type", "id", "name", "input"])
        }
        "tool_result" => {
            let parts = if node.get("content").is_some() { blocks_of(node, "content")? } else { Vec::new() };
            let result = ToolResultPart {
                call_id: node.required("tool_use_id")?,
                is_error: node.get("is_error").is_some_and(Value::is_true),
                parts,
                ..Default::default()
            };
            (Kind::ToolResult(result), &["type", "tool_use_id", "content", "is_error"])
        }
        "image" | "document" => match Source::of(node)? {
            Some(source) if kind == "image" => (source.into_image(), &["type", "source"]),
            Some(source) => (source.into_file(node.text("title")?), &["type", "source", "title"]),
            None => return Ok(unknown(node, kind)),
        },
        _ => return Ok(unknown(node, kind)),
    };
    Ok(Part { provider_metadata_json: node.rest(known), ..kind.into() })
}

fn unknown(node: &Node, kind: String) -> Part {
    opaque(ANTHROPIC_MESSAGES, kind, Value::Object(node.members.clone()).to_bytes())
}

/// Where a picture or document is.
struct Source {
    mime_type: String,
    place: Place,
}

enum Place {
    Here(Vec<u8>),
    At(String),
}

impl Source {
    /// None: in no way that is known here.
    fn of(node: &Node) -> Result<Option<Self>, FormatError> {
        let Ok(Some(given)) = node.child("source") else { return Ok(None) };
        let place = match given.text("type").unwrap_or_default().as_str() {
            "base64" => {
                let data = BASE64_STANDARD.decode(given.text("data")?);
                Place::Here(data.map_err(|_| given.wrong("data", "base64 is needed"))?)
            }
            "text" => Place::Here(given.text("data")?.into_bytes()),
            "url" => Place::At(given.required("url")?),
            "file" => Place::At(given.required("file_id")?),
            _ => return Ok(None),
        };
        Ok(Some(Self { mime_type: given.text("media_type")?, place }))
    }

    fn into_image(self) -> Kind {
        let source = Some(match self.place {
            Place::Here(data) => image_part::Source::Data(data),
            Place::At(uri) => image_part::Source::Uri(uri),
        });
        Kind::Image(ImagePart { mime_type: self.mime_type, source, ..Default::default() })
    }

    fn into_file(self, name: String) -> Kind {
        let source = Some(match self.place {
            Place::Here(data) => file_part::Source::Data(data),
            Place::At(uri) => file_part::Source::Uri(uri),
        });
        Kind::File(FilePart { mime_type: self.mime_type, source, name, ..Default::default() })
    }
}

fn usage_of(node: &Node) -> Result<Usage, FormatError> {
    let written = node.child("cache_creation")?;
    let lasting = written.map(|written| written.integer("ephemeral_1h_input_tokens")).transpose()?;
    Ok(Usage {
        input_tokens: node.integer("input_tokens")?,
        output_tokens: node.integer("output_tokens")?,
        cache_read_tokens: node.integer("cache_read_input_tokens")?,
        cache_write_tokens: node.integer("cache_creation_input_tokens")?,
        cache_write_1h_tokens: lasting.flatten(),
        ..Default::default()
    })
}
