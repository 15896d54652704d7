//! Formats of providers, in and out: OpenAI Chat Completions, OpenAI Responses and Anthropic Messages.
//!
//! In: each message keeps its original in `native`, byte for byte. Roles, texts, calls, results, reasoning, pictures and files
//! become parts, what has no form becomes an opaque part, and what a provider adds to a part goes to `provider_metadata_json`.
//! Lone surrogates that JSON escapes become U+FFFD in parts and stay in `native`.
//!
//! Out: a message with `native` of that format comes back as it is, any other is built from its parts; what the format cannot
//! say is left out.

mod anthropic;
mod anthropic_out;
mod json;
mod openai;
mod openai_out;
mod responses;
mod responses_out;

use std::fmt;

pub use anthropic::{ANTHROPIC_MESSAGES, from_anthropic};
pub use anthropic_out::{AnthropicRequest, to_anthropic};
pub use openai::{OPENAI_CHAT, from_openai};
pub use openai_out::to_openai;
pub use responses::{OPENAI_RESPONSES, from_responses};
pub use responses_out::to_responses;
pub use serde_json::value::RawValue;

use crate::types::part::Kind;
use crate::types::{OpaquePart, Part};

/// JSON that is not of the format it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatError {
    /// The place: `messages[3].content`.
    pub path: String,
    /// What would be right there.
    pub problem: String,
}

impl fmt::Display for FormatError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.path, self.problem)
    }
}

impl std::error::Error for FormatError {}

/// A part that contextengine has no form for.
fn opaque(format: &str, kind: String, json: Vec<u8>) -> Part {
    Kind::Opaque(OpaquePart { format: format.into(), r#type: kind, json }).into()
}
