//! What messages cost and what a budget leaves for them, without the service. Tokens are the model's.

use crate::types::budget::Kind as BudgetKind;
use crate::types::part::Kind;
use crate::types::window_budget::SystemPrompt;
use crate::types::{AssembleRequest, AssembleResponse, Message, Part, WindowBudget};

/// More than any provider's frame of a message.
const MESSAGE_TOKENS: i64 = 16;
/// More than a picture costs.
const IMAGE_TOKENS: i64 = 2_000;
// The algebra of the service for a window without parts.
const DEFAULT_WINDOW: i64 = 128_000;
const DEFAULT_OUTPUT_RESERVE: i64 = 8_192;
const MIN_SAFETY_MARGIN: i64 = 2_048;
const SAFETY_SHARE: f64 = 0.05;
const ROT_SHARE: f64 = 0.25;

/// The most tokens that a message can have: one for each byte of its encoding.
pub(crate) fn bound(message: &Message) -> i64 {
    let rest = Message {
        role: message.role,
        custom_role: message.custom_role.clone(),
        name: message.name.clone(),
        ..Default::default()
    };
    size(&rest) + parts_size(&message.parts) + MESSAGE_TOKENS + media(&message.parts)
}

/// The tokens that a request leaves for items. `last`: the last good reply.
pub(crate) fn room(request: &AssembleRequest, last: Option<&AssembleResponse>) -> i64 {
    let report = last.and_then(|last| last.budget.as_ref());
    let addition = report.map_or(0, |report| report.system_prompt_addition);
    let left = match (request.budget.as_ref().and_then(|budget| budget.kind.as_ref()), last) {
        (Some(BudgetKind::MessageTokens(tokens)), _) => tokens - addition,
        (Some(BudgetKind::Window(window)), _) if window.window.is_some() => available(request, window) - addition,
        (Some(BudgetKind::Window(window)), None) => available(request, window) - addition,
        (None, None) => available(request, &WindowBudget::default()) - addition,
        (_, Some(_)) => report.map_or(0, |report| report.messages + report.prompt),
    };
    left - parts_size(&request.prompt) - media(&request.prompt)
}

/// What a window leaves after its parts.
fn available(request: &AssembleRequest, given: &WindowBudget) -> i64 {
    let window = given.window.unwrap_or(DEFAULT_WINDOW);
    let system = match &given.system_prompt {
        Some(SystemPrompt::SystemPromptTokens(tokens)) => *tokens,
        Some(SystemPrompt::SystemPromptText(text)) => text.len() as i64,
        None => 0,
    };
    let definitions = if given.tools.is_empty() { &request.tools } else { &given.tools };
    let share = |share: f64| (window as f64 * share).ceil() as i64;
    window
        - system
        - given.tool_tokens.unwrap_or_else(|| definitions.iter().map(size).sum())
        - given.output_reserve.unwrap_or(DEFAULT_OUTPUT_RESERVE)
        - given.safety_margin.unwrap_or(MIN_SAFETY_MARGIN.max(share(SAFETY_SHARE)))
        - given.rot_buffer.unwrap_or(share(ROT_SHARE))
}

/// What pictures and files may cost beyond the bytes that name them.
fn media(parts: &[Part]) -> i64 {
    let cost = |part: &Part| match &part.kind {
        Some(Kind::Image(_)) => IMAGE_TOKENS,
        Some(Kind::File(file)) => file.size_bytes,
        Some(Kind::ToolResult(result)) => media(&result.parts),
        _ => 0,
    };
    parts.iter().map(cost).sum()
}

/// The encoded size of a Message with only these parts.
fn parts_size(parts: &[Part]) -> i64 {
    // Each behind a tag of one byte and its length.
    let sizes = parts.iter().map(prost::Message::encoded_len);
    sizes.map(|size| (1 + prost::length_delimiter_len(size) + size) as i64).sum()
}

fn size(message: &impl prost::Message) -> i64 {
    message.encoded_len() as i64
}
