//! A context made by the client, while the service is away. Pure.

use std::borrow::Borrow;
use std::collections::HashSet;

use crate::atoms::{Atom, Entry, atoms_of};
use crate::costs::room;
use crate::types::assemble_response::Outcome;
use crate::types::{AssembleRequest, AssembleResponse, CacheReport, Item, Message, Role};

/// The `outcome_reason` of what a client assembles by itself.
pub const FALLBACK_REASON: &str = "CLIENT_FALLBACK";

/// The context for a request without the service: the items of the last good assembly, what was handed over later and what the
/// request brings, whole atoms within the budget. The outcome is DEGRADED, or OVER_BUDGET where what may not go exceeds the
/// budget. `last`: the last good reply.
pub fn make_up(
    request: &AssembleRequest,
    held: &[impl Borrow<Item>],
    last: Option<&AssembleResponse>,
    later: &[Message],
) -> AssembleResponse {
    let limit = room(request, last);
    let kept = fitted(atoms_of(entries_of(request, held, last, later)), limit);
    let estimated_tokens = kept.iter().map(Atom::cost).sum();
    let entries = kept.into_iter().flat_map(|atom| atom.entries);
    let items: Vec<_> = entries.map(|entry| entry.item).collect();
    let mut response = AssembleResponse {
        outcome: if estimated_tokens > limit { Outcome::OverBudget } else { Outcome::Degraded }.into(),
        outcome_reason: FALLBACK_REASON.into(),
        estimated_tokens,
        cache: Some(CacheReport { total_count: items.len() as i32, ..Default::default() }),
        items,
        ..Default::default()
    };
    if let Some(last) = last {
        response.system_prompt_addition = last.system_prompt_addition.clone();
        response.revision = last.revision;
        response.engine_id = last.engine_id.clone();
        response.context_projection = Some(last.context_projection.clone().unwrap_or_default());
    }
    response
}

/// The list before anything is left out, each item with its cost.
fn entries_of(
    request: &AssembleRequest,
    held: &[impl Borrow<Item>],
    last: Option<&AssembleResponse>,
    later: &[Message],
) -> Vec<Entry> {
    let (held, later, added) = match &request.live {
        Some(live) => (&[][..], &[][..], &live.messages),
        None => (held, later, &request.ingest),
    };
    let factor = last.and_then(|last| last.budget.as_ref()).map_or(0.0, |report| report.model_factor);
    let factor = if factor == 0.0 { 1.0 } else { factor };
    let mut seen = HashSet::new();
    let mut entries = Vec::with_capacity(held.len() + later.len() + added.len());
    for item in held {
        let item: &Item = item.borrow();
        seen.extend(item.message.as_ref().map(|message| message.id.as_str()));
        let cost = (item.tokens as f64 * factor).ceil() as i64;
        entries.push(Entry { item: item.clone(), cost });
    }
    for message in later.iter().chain(added) {
        if message.id.is_empty() || seen.insert(&message.id) {
            entries.push(Entry::of(message.clone()));
        }
    }
    entries
}

/// The atoms that stay: the oldest go first, messages before summaries, those that may not go never.
fn fitted(atoms: Vec<Atom>, limit: i64) -> Vec<Atom> {
    let mut total: i64 = atoms.iter().map(Atom::cost).sum();
    let fixed = fixed_of(&atoms);
    let mut gone = HashSet::new();
    for ours in [false, true] {
        for (index, atom) in atoms.iter().enumerate() {
            if total > limit && !fixed.contains(&index) && atom.first().is_some_and(is_ours) == ours {
                gone.insert(index);
                total -= atom.cost();
            }
        }
    }
    let kept = atoms.into_iter().enumerate().filter(|(index, _)| !gone.contains(index));
    kept.map(|(_, atom)| atom).collect()
}

/// The indexes of atoms that may not go.
fn fixed_of(atoms: &[Atom]) -> HashSet<usize> {
    let instructs =
        |atom: &&Atom| atom.first().is_some_and(|message| matches!(message.role(), Role::System | Role::Developer));
    let mut fixed: HashSet<_> = (0..atoms.iter().take_while(instructs).count()).collect();
    let mut asked = None;
    for (index, atom) in atoms.iter().enumerate() {
        for message in atom.messages() {
            if message.labels.get("pinned").is_some_and(|pinned| pinned != "false") {
                fixed.insert(index);
            }
            if message.role() == Role::User && !is_ours(message) {
                asked = Some(index);
            }
        }
    }
    fixed.extend(asked);
    fixed.extend(atoms.len().checked_sub(1));
    fixed
}

/// Whether the service or a client made it.
fn is_ours(message: &Message) -> bool {
    message.id.starts_with("ce:")
}
