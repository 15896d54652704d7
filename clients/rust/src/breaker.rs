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
/// The encoded HealthCheckResponse of a server that serves. One that drains says otherwise.
const SERVING: [u8; 2] = [0x08, 0x01];

/// Open from the first call that finds nobody, or nobody who answers, until one is answered.
#[derive(Default)]
pub(crate) struct Breaker(Mutex<State>);

#[derive(Default)]
struct State {
    /// What the call failed with that found the service away. None: it is there, as far as is known.
    known: Option<Error>,
    /// Closed once the question is answered that goes on; and how long calls wait for that.
    asking: Option<(watch::Receiver<()>, Instant)>,
}

impl Breaker {
    /// The service is there.
    pub(crate) fn answered(&self) {
        self.state().known = None;
    }

    /// A call has given up with this error.
    pub(crate) fn failed(&self, error: &Error) {
        let is_unanswered = matches!(error.code(), Code::DeadlineExceeded | Code::Unknown | Code::Internal);
        if error.code() == Code::Unavailable || error.reason().is_empty() && is_unanswered {
            self.state().known = Some(error.clone());
        } else if !error.reason().is_empty() {
            self.answered();
        }
    }

    /// What the call failed with that found the service away. None: the service may be asked. While it is away, this begins a
    /// question where none goes on (`ask`: whether the service is there), and waits for its answer until it is a moment old.
    pub(crate) async fn away<F>(self: &Arc<Self>, ask: impl FnOnce() -> F) -> Option<Error>
    where
        F: Future<Output = bool> + Send + 'static,
    {
        let (mut asking, until) = {
            let mut state = self.state();
            state.known.as_ref()?;
            match &state.asking {
                Some(asking) => asking.clone(),
                None => {
                    let (asked, answered) = watch::channel(());
                    let asking = (answered, Instant::now() + PATIENCE);
                    state.asking = Some(asking.clone());
                    let (breaker, question) = (self.clone(), ask());
                    tokio::spawn(async move {
                        let is_there = question.await;
                        let mut state = breaker.state();
                        state.asking = None;
                        if is_there {
                            state.known = None;
                        }
                        drop(asked);
                    });
                    asking
                }
            }
        };
        // Nothing is ever told: that the sender is gone says all.
        _ = timeout_at(until, asking.changed()).await;
        self.state().known.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether what became of a question says that the service is there. Whoever refuses it is there too.
pub(crate) fn is_there(answer: Result<impl AsRef<[u8]>, Error>) -> bool {
    match answer {
        Ok(reply) => reply.as_ref() == SERVING,
        Err(error) => !matches!(error.code(), Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled),
    }
}
