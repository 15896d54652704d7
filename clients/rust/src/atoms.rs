//! Atoms: messages that stand or fall together, an assistant's calls with all their results above all.

use crate::costs::bound;
use crate::messages::tool_result;
use crate::types::part::Kind;
use crate::types::{Item, Message, Origin, Role, ToolCallPart, origin};

/// An item and its cost in the model's tokens.
pub(crate) struct Entry {
    pub(crate) item: Item,
    pub(crate) cost: i64,
}

impl Entry {
    /// The entry of a message that the service has not shown.
    pub(crate) fn of(message: Message) -> Self {
        let cost = bound(&message);
        let item = Item { id: message.id.clone(), tokens: cost, message: Some(message), ..Default::default() };
        Self { item, cost }
    }
}

/// Entries that stand or fall together, and the calls among them that wait for their results.
#[derive(Default)]
pub(crate) struct Atom {
    pub(crate) entries: Vec<Entry>,
    open: Vec<ToolCallPart>,
}

impl Atom {
    pub(crate) fn cost(&self) -> i64 {
        self.entries.iter().map(|entry| entry.cost).sum()
    }

    /// Its messages, in order.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &Message> {
        self.entries.iter().filter_map(|entry| entry.item.message.as_ref())
    }

    pub(crate) fn first(&self) -> Option<&Message> {
        self.messages().next()
    }

    fn ends_in_reasoning(&self) -> bool {
        self.messages().last().is_some_and(|last| {
            last.role() == Role::Assistant
                && !last.parts.is_empty()
                && last.parts.iter().all(|part| matches!(part.kind, Some(Kind::Reasoning(_))))
        })
    }

    /// Takes the results out of a message that answer no open call; the others close theirs. How many did.
    fn answer(&mut self, item: &mut Item) -> usize {
        let Some(message) = item.message.as_mut() else { return 0 };
        let before = message.parts.len();
        let mut answered = 0;
        message.parts.retain(|part| {
            let Some(Kind::ToolResult(result)) = &part.kind else { return true };
            let Some(index) = self.open.iter().position(|call| call.call_id == result.call_id) else { return false };
            self.open.remove(index);
            answered += 1;
            true
        });
        if message.parts.len() < before {
            message.native = None;
        }
        answered
    }

    /// Gives the calls that are open a result that says there is none.
    fn close(&mut self) {
        let caller = self.messages().filter(|message| calls_of(message).next().is_some()).last();
        let caller = caller.map_or_else(String::new, |message| message.id.clone());
        for call in std::mem::take(&mut self.open) {
            let mut message = tool_result(call.call_id.clone(), "No result was recorded.");
            message.id = format!("ce:no-result:{caller}:{}", call.call_id);
            if let Some(Kind::ToolResult(result)) = message.parts[0].kind.as_mut() {
                result.name = call.name;
                result.is_error = true;
            }
            let mut entry = Entry::of(message);
            let kind = origin::Kind::Synthetic("no result was recorded".into());
            entry.item.origin = Some(Origin { kind: Some(kind) });
            self.entries.push(entry);
        }
    }
}

/// The atoms of a list. Results without a call are left out, calls that were left get a made-up result; those of the last
/// atom stay open: they are pending.
pub(crate) fn atoms_of(entries: impl IntoIterator<Item = Entry>) -> Vec<Atom> {
    let mut atoms: Vec<Atom> = Vec::new();
    let mut nothing = Atom::default();
    for mut next in entries {
        let current = atoms.last_mut().unwrap_or(&mut nothing);
        let mut answered = 0;
        if next.item.message.as_ref().is_some_and(answers) {
            answered = current.answer(&mut next.item);
            if next.item.message.as_ref().is_some_and(|message| message.parts.is_empty()) {
                continue;
            }
        }
        let message = next.item.message.as_ref();
        let calls: Vec<_> = message.into_iter().flat_map(calls_of).cloned().collect();
        let is_reply = message.is_some_and(|message| message.role() == Role::Assistant);
        if answered > 0 || is_reply && current.ends_in_reasoning() {
            current.entries.push(next);
            current.open.extend(calls);
        } else {
            current.close();
            atoms.push(Atom { entries: vec![next], open: calls });
        }
    }
    atoms
}

fn answers(message: &Message) -> bool {
    message.role() == Role::Tool || message.parts.iter().any(|part| matches!(part.kind, Some(Kind::ToolResult(_))))
}

fn calls_of(message: &Message) -> impl Iterator<Item = &ToolCallPart> {
    let parts = if message.role() == Role::Assistant { message.parts.as_slice() } else { &[] };
    parts.iter().filter_map(|part| match &part.kind {
        Some(Kind::ToolCall(call)) => Some(call),
        _ => None,
    })
}
