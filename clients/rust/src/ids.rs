//! Ids that make a call safe to send twice.

use uuid::Uuid;

use crate::types::Message;

/// A UUIDv7 (RFC 9562): 36 characters, rising with time.
pub fn new_id() -> String {
    Uuid::now_v7().to_string()
}

/// Sets an id that is missing.
pub(crate) fn fill(id: &mut String) {
    if id.is_empty() {
        *id = new_id();
    }
}

/// Gives messages without an id a new one.
///
/// Calls do this by themselves, on what they were given; whoever keeps messages to send them again does it first.
pub fn fill_messages(messages: &mut [Message]) {
    for message in messages {
        fill(&mut message.id);
    }
}
