//! What could not be sent while the service was away, in order, within bounds.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prost::Message;
use tonic::Code;

use crate::error::Error;
use crate::spill::Spill;
use crate::types::{AfterTurnRequest, SessionRef};

pub(crate) const MAX_MESSAGES: usize = 10_000;
pub(crate) const MAX_BYTES: usize = 64 << 20;
const MAX_REJECTED: usize = 1_000;

/// A queued request that the service refused for what it is.
#[derive(Clone, Debug)]
pub struct Rejected {
    /// What was refused.
    pub request: Arc<AfterTurnRequest>,
    /// Why.
    pub error: Error,
}

/// The queue of a client.
pub(crate) struct Queue {
    max_messages: usize,
    max_bytes: usize,
    state: Mutex<State>,
    /// Whether an entry is written to a disk, which takes its time.
    pub(crate) is_spilled: bool,
}

struct State {
    entries: VecDeque<Arc<AfterTurnRequest>>,
    messages: usize,
    bytes: usize,
    rejected: VecDeque<Rejected>,
    spill: Option<Spill>,
}

impl Queue {
    /// A queue that holds what its spill file holds.
    pub(crate) fn new(max_messages: usize, max_bytes: usize, spill_file: Option<&Path>) -> io::Result<Self> {
        let (spill, entries) = match spill_file {
            Some(path) => Spill::open(path).map(|(spill, entries)| (Some(spill), entries))?,
            None => (None, Vec::new()),
        };
        let state = State {
            messages: entries.iter().map(weight).sum(),
            bytes: entries.iter().map(Message::encoded_len).sum(),
            entries: entries.into_iter().map(Arc::new).collect(),
            rejected: VecDeque::new(),
            spill,
        };
        Ok(Self { max_messages, max_bytes, state: Mutex::new(state), is_spilled: spill_file.is_some() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues an entry. An error changes nothing.
    pub(crate) fn add(&self, entry: AfterTurnRequest) -> Result<(), Error> {
        let mut state = self.lock();
        let (messages, bytes) = (state.messages + weight(&entry), state.bytes + entry.encoded_len());
        if messages > self.max_messages || bytes > self.max_bytes {
            let problem = format!(
                "{} messages of {} bytes wait for the service; {} and {} bytes are the limits",
                state.messages, state.bytes, self.max_messages, self.max_bytes
            );
            return Err(Error::new(Code::ResourceExhausted, "QUEUE_FULL", problem));
        }
        if let Some(spill) = &mut state.spill {
            // The agent goes on without its disk, too.
            spill.append(&entry).map_err(|problem| {
                let problem = format!("the spill file cannot be written: {problem}");
                Error::new(Code::ResourceExhausted, "QUEUE_FULL", problem)
            })?;
        }
        state.entries.push_back(Arc::new(entry));
        (state.messages, state.bytes) = (messages, bytes);
        Ok(())
    }

    /// The oldest entry of a session.
    pub(crate) fn first(&self, session: &SessionRef) -> Option<Arc<AfterTurnRequest>> {
        self.lock().entries.iter().find(|entry| entry.session.as_ref() == Some(session)).cloned()
    }

    /// The sessions that have entries, the one with the oldest entry first.
    pub(crate) fn sessions(&self) -> Vec<SessionRef> {
        let state = self.lock();
        let mut seen = HashSet::new();
        let named = state.entries.iter().filter_map(|entry| entry.session.as_ref());
        named.filter(|session| seen.insert(*session)).cloned().collect()
    }

    /// Takes out an entry that the service has answered. False: another call had sent it as well, and was quicker.
    pub(crate) fn sent(&self, entry: &Arc<AfterTurnRequest>) -> bool {
        let mut state = self.lock();
        let Some(index) = state.entries.iter().position(|found| Arc::ptr_eq(found, entry)) else { return false };
        state.entries.remove(index);
        state.messages -= weight(entry);
        state.bytes -= entry.encoded_len();
        if state.entries.is_empty()
            && let Some(spill) = &mut state.spill
        {
            spill.clear();
        }
        true
    }

    /// Takes out an entry that was refused for good. An error: sending it again may help.
    pub(crate) fn failed(&self, entry: &Arc<AfterTurnRequest>, error: Error) -> Result<(), Error> {
        if !error.is_for_good() {
            return Err(error);
        }
        if self.sent(entry) {
            let rejected = &mut self.lock().rejected;
            rejected.push_back(Rejected { request: entry.clone(), error });
            if rejected.len() > MAX_REJECTED {
                rejected.pop_front();
            }
        }
        Ok(())
    }

    /// What was refused, the newest last.
    pub(crate) fn rejected(&self) -> Vec<Rejected> {
        self.lock().rejected.iter().cloned().collect()
    }

    /// How many messages wait, of a session or of all.
    pub(crate) fn count(&self, session: Option<&SessionRef>) -> usize {
        let state = self.lock();
        let entries = state.entries.iter().filter(|entry| is_of(entry, session));
        entries.map(|entry| weight(entry)).sum()
    }
}

/// How many messages an entry counts as.
fn weight(entry: &AfterTurnRequest) -> usize {
    entry.messages.len().max(1)
}

fn is_of(entry: &AfterTurnRequest, session: Option<&SessionRef>) -> bool {
    session.is_none() || session == entry.session.as_ref()
}
