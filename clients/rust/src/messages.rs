//! Messages in a word.

use crate::error::Error;
use crate::ids::new_id;
use crate::types::part::Kind;
use crate::types::{Message, Part, Role, TextPart, ToolCallPart, ToolResultPart};

/// A message of the user, with a new id.
pub fn user(text: impl Into<String>) -> Message {
    message(Role::User, vec![self::text(text)])
}

/// Instructions of the system, with a new id. Where they lead the session, every assembly shows them verbatim.
pub fn system(text: impl Into<String>) -> Message {
    message(Role::System, vec![self::text(text)])
}

/// A reply of the model, with a new id: its text, where there is any, and its calls.
pub fn assistant(text: impl Into<String>, calls: impl IntoIterator<Item = ToolCallPart>) -> Message {
    let text = text.into();
    let mut parts = Vec::new();
    if !text.is_empty() {
        parts.push(self::text(text));
    }
    parts.extend(calls.into_iter().map(|call| Kind::ToolCall(call).into()));
    message(Role::Assistant, parts)
}

/// A call for [`assistant`]. `arguments`: JSON as the model wrote it.
pub fn tool_call(call_id: impl Into<String>, name: impl Into<String>, arguments: impl Into<Vec<u8>>) -> ToolCallPart {
    ToolCallPart { call_id: call_id.into(), name: name.into(), arguments_json: arguments.into(), ..Default::default() }
}

/// A tool's answer to a call, with a new id.
pub fn tool_result(call_id: impl Into<String>, text: impl Into<String>) -> Message {
    let result = ToolResultPart { call_id: call_id.into(), parts: vec![self::text(text)], ..Default::default() };
    message(Role::Tool, vec![Kind::ToolResult(result).into()])
}

/// A part of plain text.
pub fn text(text: impl Into<String>) -> Part {
    Kind::Text(TextPart { text: text.into() }).into()
}

/// The text of bytes that may not be UTF-8, as another program may hand them over. Refused where they are not, as
/// [`InvalidField`](crate::ErrorKind::InvalidField): a text is never repaired in silence.
pub fn text_of_bytes(bytes: impl Into<Vec<u8>>) -> Result<String, Error> {
    String::from_utf8(bytes.into())
        .map_err(|_| Error::invalid("text", "is not UTF-8: give valid text, or bytes in `native`"))
}

/// The text of a message: its text parts and those of its tool results, joined by line ends. No reasoning.
pub fn text_of(message: &Message) -> String {
    let mut found = Vec::new();
    texts(&message.parts, &mut found);
    found.join("\n")
}

fn texts<'a>(parts: &'a [Part], found: &mut Vec<&'a str>) {
    for part in parts {
        match &part.kind {
            Some(Kind::Text(part)) => found.push(&part.text),
            Some(Kind::ToolResult(result)) => texts(&result.parts, found),
            _ => {}
        }
    }
}

fn message(role: Role, parts: Vec<Part>) -> Message {
    Message { id: new_id(), role: role.into(), parts, ..Default::default() }
}

impl From<Kind> for Part {
    fn from(kind: Kind) -> Self {
        Self { kind: Some(kind), ..Default::default() }
    }
}
