//! What an assembly answers.

use std::sync::Arc;

use tonic::Code;

use crate::error::Error;
use crate::types::assemble_response::Outcome;
use crate::types::{AssembleResponse, Item, Message};

/// Why the client made an assembly by itself.
#[derive(Clone, Debug)]
pub struct Degraded {
    /// The error's reason, or the name of its gRPC code where it has none.
    pub reason: String,
    /// The error.
    pub error: Error,
    /// How many messages of `ingest` the full queue did not take: nobody stores them but the caller.
    pub unqueued: usize,
}

/// The context for one model call, whole.
#[derive(Clone, Debug)]
pub struct Assembly {
    /// The whole list, in order; shared with later assemblies.
    pub items: Vec<Arc<Item>>,
    /// The reply, but for its items: those that came stand in `items`.
    pub response: Arc<AssembleResponse>,
    /// Why the client made it by itself. None: the service did.
    pub degraded: Option<Degraded>,
}

impl Assembly {
    /// What to send to the model, in order.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Message> {
        self.items.iter().filter_map(|item| item.message.as_ref())
    }

    /// Whether the list is within its budget and as asked.
    pub fn fits(&self) -> bool {
        self.response.outcome() == Outcome::Fits
    }

    /// The list that a reply makes of the list that is held. An error where the reply does not fit.
    pub(crate) fn extend(held: &[Arc<Item>], mut response: AssembleResponse) -> Result<Self, Error> {
        let cache = response.cache.unwrap_or_default();
        let reused = usize::try_from(cache.reused_count).ok().and_then(|reused| held.get(..reused));
        let items = std::mem::take(&mut response.items);
        match reused {
            Some(reused) if (reused.len() + items.len()) as i64 == i64::from(cache.total_count) => Ok(Self {
                items: reused.iter().cloned().chain(items.into_iter().map(Arc::new)).collect(),
                response: Arc::new(response),
                degraded: None,
            }),
            _ => {
                let problem = format!(
                    "{} reused of {} held and {} new items are not the {} announced",
                    cache.reused_count,
                    held.len(),
                    items.len(),
                    cache.total_count
                );
                Err(Error::new(Code::Internal, "DELTA_MISMATCH", problem))
            }
        }
    }

    /// What the client made by itself.
    pub(crate) fn made_up(mut response: AssembleResponse, degraded: Degraded) -> Self {
        let items = std::mem::take(&mut response.items).into_iter().map(Arc::new).collect();
        Self { items, response: Arc::new(response), degraded: Some(degraded) }
    }
}
