//! The requests of an import, which are read once and may have to be sent twice.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use prost::bytes::Bytes;
use tokio_stream::Stream;

/// How many bytes are kept to be sent again; gRPC itself keeps as many for a call.
const MAX_KEPT: usize = 256 << 10;

/// Encoded requests that several attempts send, as far as they are kept.
pub(crate) struct Replay<I>(Arc<Mutex<State<I>>>);

struct State<I> {
    rest: I,
    /// What was read of `rest`. None: too much to keep.
    kept: Option<Vec<Bytes>>,
    bytes: usize,
    /// The most bytes that one request has.
    largest: usize,
    attempts: usize,
}

impl<I: Iterator<Item = Bytes>> Replay<I> {
    pub(crate) fn new(rest: I) -> Self {
        Self(Arc::new(Mutex::new(State { rest, kept: Some(Vec::new()), bytes: 0, largest: 0, attempts: 0 })))
    }

    /// Whether another attempt would send the same from its beginning.
    pub(crate) fn is_whole(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).kept.is_some()
    }

    /// The bytes of the largest request that was read.
    pub(crate) fn largest(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).largest
    }

    /// All requests, for the next attempt. The streams of earlier ones end.
    pub(crate) fn attempt(&self) -> Attempt<I> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.attempts += 1;
        Attempt { state: self.0.clone(), number: state.attempts, position: 0 }
    }
}

/// The requests of one attempt.
pub(crate) struct Attempt<I> {
    state: Arc<Mutex<State<I>>>,
    number: usize,
    position: usize,
}

impl<I: Iterator<Item = Bytes>> Attempt<I> {
    fn next(&mut self) -> Option<Bytes> {
        let state = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.attempts != self.number {
            return None;
        }
        if let Some(request) = state.kept.as_ref().and_then(|kept| kept.get(self.position)) {
            self.position += 1;
            return Some(request.clone());
        }
        let request = state.rest.next()?;
        self.position += 1;
        state.bytes += request.len();
        state.largest = state.largest.max(request.len());
        match &mut state.kept {
            Some(kept) if state.bytes <= MAX_KEPT => kept.push(request.clone()),
            _ => state.kept = None,
        }
        Some(request)
    }
}

impl<I: Iterator<Item = Bytes>> Stream for Attempt<I> {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Bytes>> {
        Poll::Ready(self.next())
    }
}
