//! Whether the service is known to be away, so that no call waits for it once more.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tonic::Code;

use crate::error::Error;

/// The rpc that asks. An empty request means the whole server.
pub(crate) const HEALTH: &str = "/grpc.health.v1.Health/Check";
/// How long one question may take. It goes on beside the calls, which do not wait for it.
pub(crate) const PROBE: Duration = Duration::from_secs(5);
/// How long from its beginning calls wait for the answer of one question, all together.
const PATIENCE: Duration = Duration::from_millis(50);
/// How long a trial holds the other calls back at most: the longest deadline of a call that waits for no model. A compaction
/// that happens to be the trial may take ten times as long.
const TRIAL: Duration = Duration::from_secs(60);
/// How long nothing is asked once the trial behind a question has failed: as long as a question that hangs takes anyway. Twice
/// as long each further time.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// The longest: calls that are answered again are found within a minute, and a call of 2 s that hangs each minute costs an agent
/// a thirtieth of its time.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The encoded HealthCheckResponse of a server that serves. One that drains says otherwise.
const SERVING: [u8; 2] = [0x08, 0x01];

/// Open from the first call that finds nobody, or nobody who answers. Half-open once the service says that it serves: calls go
/// through as trials, all of them while that was never wrong, then one at a time. Closed once a call is answered.
#[derive(Default)]
pub(crate) struct Breaker(Mutex<State>);

#[derive(Default)]
struct State {
    /// What the newest call failed with that found the service away. None: closed.
    known: Option<Error>,
    half_open: bool,
    /// How long a trial holds others back. None: there is none.
    trial_until: Option<Instant>,
    /// The newest pause between a trial that failed and the next question. Zero: none has failed.
    pause: Duration,
    paused_until: Option<Instant>,
    /// Closed once the question is answered that goes on; and how long calls wait for that.
    asking: Option<(watch::Receiver<()>, Instant)>,
}

impl State {
    fn close(&mut self) {
        *self = Self { asking: self.asking.take(), ..Self::default() };
    }

    fn asks(&self) -> bool {
        self.known.is_some() && !self.half_open && self.paused_until.is_none_or(|end| Instant::now() >= end)
    }

    fn admits(&self, now: Instant) -> bool {
        self.half_open && (self.pause.is_zero() || self.trial_until.is_none_or(|end| now >= end))
    }
}

impl Breaker {
    /// Lets a call through. An error is what the call failed with that found the service away. Where it is time to, this begins
    /// a question (`ask`: whether the service is there), and waits for its answer until it is a moment old.
    pub(crate) async fn admit<F>(self: &Arc<Self>, ask: impl FnOnce() -> F) -> Result<Admission, Error>
    where
        F: Future<Output = bool> + Send + 'static,
    {
        if let Some((mut asking, until)) = self.asking(ask) {
            // Nothing is ever told: that the sender is gone says all.
            _ = timeout_at(until, asking.changed()).await;
        }
        let mut state = self.state();
        let now = Instant::now();
        let is_trial = match &state.known {
            None => false,
            Some(_) if state.admits(now) => true,
            Some(known) => return Err(known.clone()),
        };
        if is_trial {
            state.trial_until = Some(now + TRIAL);
        }
        Ok(Admission { breaker: self.clone(), is_trial })
    }

    /// The question that goes on, begun where it is time to. None: none is needed.
    fn asking<F>(self: &Arc<Self>, ask: impl FnOnce() -> F) -> Option<(watch::Receiver<()>, Instant)>
    where
        F: Future<Output = bool> + Send + 'static,
    {
        let mut state = self.state();
        if !state.asks() {
            return None;
        }
        if state.asking.is_some() {
            return state.asking.clone();
        }
        let (asked, answered) = watch::channel(());
        let asking = (answered, Instant::now() + PATIENCE);
        state.asking = Some(asking.clone());
        let (breaker, question) = (self.clone(), ask());
        tokio::spawn(async move {
            let is_there = question.await;
            let mut state = breaker.state();
            state.asking = None;
            state.half_open = is_there && state.known.is_some();
            drop(asked);
        });
        Some(asking)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that was let through. One that is dropped before it has ended says nothing of the service: another may be the trial.
pub(crate) struct Admission {
    breaker: Arc<Breaker>,
    is_trial: bool,
}

impl Admission {
    /// The call was answered: the service is there.
    pub(crate) fn answered(&self) {
        self.breaker.state().close();
    }

    /// The call has given up with this error. Where the service said that it serves and a trial finds it away, it is asked the
    /// later the next time.
    pub(crate) fn failed(&self, error: &Error) {
        let is_unanswered = matches!(error.code(), Code::DeadlineExceeded | Code::Unknown | Code::Internal);
        let is_away = error.code() == Code::Unavailable || error.reason().is_empty() && is_unanswered;
        let mut state = self.breaker.state();
        if !error.reason().is_empty() && !is_away {
            state.close();
        } else if is_away {
            state.known = Some(error.clone());
            if self.is_trial && state.half_open {
                state.half_open = false;
                state.pause = (2 * state.pause).clamp(FIRST_PAUSE, LONGEST_PAUSE);
                state.paused_until = Some(Instant::now() + state.pause);
            }
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if self.is_trial {
            self.breaker.state().trial_until = None;
        }
    }
}

/// Whether what became of a question says that the service is there. Whoever refuses it is there too.
pub(crate) fn is_there(answer: Result<impl AsRef<[u8]>, Error>) -> bool {
    match answer {
        Ok(reply) => reply.as_ref() == SERVING,
        Err(error) => !matches!(error.code(), Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled),
    }
}
