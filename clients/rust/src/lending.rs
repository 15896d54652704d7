//! Lending a model to the server: jobs in, completions out, over as many streams as it takes.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::future::Future;
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;

use crate::client::Client;
use crate::error::Error;
use crate::types::attach_request::{Completion, Hello, KeepLease, Kind as Ask};
use crate::types::attach_response::{Job, Kind as Tell};
use crate::types::{AttachRequest, AttachResponse};

/// Between two streams: three times as long after each that did not get through.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A lease is extended after a third of its time, within these bounds: the clocks of two machines differ.
const OFTEN: Duration = Duration::from_secs(1);
const SELDOM: Duration = Duration::from_secs(20);

impl Client {
    /// Lends a model to the server until the future is dropped. Each job is given to `complete`, in a task of its own, which is
    /// aborted when nobody wants the job any more. It answers a text, or a completion that lacks no more than its ids. Its error
    /// is told to the server as a failure that may pass, without what it says.
    ///
    /// A stream that breaks is opened anew, and answers that were not received go out again. The future ends with the error that
    /// no new stream would mend.
    ///
    /// ```no_run
    /// # async fn example(client: contextengine::Client) {
    /// use contextengine::types::attach_request::Hello;
    ///
    /// let hello = Hello { host_id: "worker-1".into(), ..Default::default() };
    /// let error = client.lend(hello, |job| async move { call_the_model(&job.system_prompt, &job.messages).await }).await;
    /// println!("the model is not lent any more: {error}");
    /// # }
    /// # async fn call_the_model(_: &str, _: &[contextengine::types::Message]) -> Result<String, String> { Ok(String::new()) }
    /// ```
    pub async fn lend<F, W, C, E>(&self, hello: Hello, complete: F) -> Error
    where
        F: Fn(Job) -> W,
        W: Future<Output = Result<C, E>> + Send + 'static,
        C: Into<Completion> + Send + 'static,
        E: Display + Send + 'static,
    {
        let (said, heard) = mpsc::unbounded_channel();
        let mut lending = Lending {
            hello: hello.into(),
            said,
            heard,
            working: JoinSet::new(),
            jobs: HashMap::new(),
            answers: BTreeMap::new(),
        };
        let mut pause = FIRST_PAUSE;
        loop {
            let (welcomed, ended) = lending.serve(self, &complete).await;
            match ended {
                Err(error) if !error.is_borne() => return error,
                _ if welcomed => pause = FIRST_PAUSE,
                _ => {}
            }
            sleep(pause).await;
            pause = LONGEST_PAUSE.min(3 * pause);
        }
    }
}

struct Lending {
    hello: AttachRequest,
    /// What the tasks say, whatever stream there is.
    said: mpsc::UnboundedSender<Ask>,
    heard: mpsc::UnboundedReceiver<Ask>,
    working: JoinSet<()>,
    jobs: HashMap<String, AbortHandle>,
    /// What was not received yet, by the job.
    answers: BTreeMap<String, Ask>,
}

impl Lending {
    /// Works on one stream to its end, and tells whether it was welcomed.
    async fn serve<F, W, C, E>(&mut self, client: &Client, complete: &F) -> (bool, Result<(), Error>)
    where
        F: Fn(Job) -> W,
        W: Future<Output = Result<C, E>> + Send + 'static,
        C: Into<Completion> + Send + 'static,
        E: Display + Send + 'static,
    {
        let (requests, receiver) = mpsc::unbounded_channel();
        let first = std::iter::once(self.hello.clone()).chain(self.answers.values().cloned().map(AttachRequest::from));
        let in_order = tokio_stream::iter(first.collect::<Vec<_>>()).chain(UnboundedReceiverStream::new(receiver));
        let mut replies = match client.attach_with(in_order).await {
            Ok(replies) => replies,
            Err(error) => return (false, Err(error)),
        };
        let mut welcomed = false;
        loop {
            tokio::select! {
                reply = replies.next() => match reply {
                    None => return (welcomed, Ok(())),
                    Some(Err(error)) => return (welcomed, Err(error)),
                    Some(Ok(reply)) => {
                        welcomed |= matches!(reply.kind, Some(Tell::Welcome(_)));
                        self.hear(reply, complete);
                    }
                },
                Some(ask) = self.heard.recv() => {
                    if let Ask::Completion(answer) = &ask {
                        self.jobs.remove(&answer.job_id);
                        self.answers.insert(answer.job_id.clone(), ask.clone());
                    }
                    // Where the stream is broken its replies say so.
                    let _ = requests.send(ask.into());
                }
            }
        }
    }

    fn hear<F, W, C, E>(&mut self, reply: AttachResponse, complete: &F)
    where
        F: Fn(Job) -> W,
        W: Future<Output = Result<C, E>> + Send + 'static,
        C: Into<Completion> + Send + 'static,
        E: Display + Send + 'static,
    {
        match reply.kind {
            Some(Tell::Job(job)) => {
                while self.working.try_join_next().is_some() {}
                let id = job.job_id.clone();
                let handle =
                    self.working.spawn(work(keep_every(&job), lease_of(&job), complete(job), self.said.clone()));
                self.jobs.insert(id, handle);
            }
            Some(Tell::Receipt(receipt)) => _ = self.answers.remove(&receipt.job_id),
            Some(Tell::Cancel(cancel)) => {
                if let Some(handle) = self.jobs.remove(&cancel.job_id) {
                    handle.abort();
                }
            }
            Some(Tell::Welcome(_)) | None => {}
        }
    }
}

/// Works on a job and keeps its lease meanwhile.
async fn work<C, E>(
    every: Duration,
    lease: KeepLease,
    completing: impl Future<Output = Result<C, E>> + Send + 'static,
    said: mpsc::UnboundedSender<Ask>,
) where
    C: Into<Completion> + Send + 'static,
    E: Display + Send + 'static,
{
    // In a task of its own a panic is a failure as well.
    let mut completing = JoinSet::from_iter([completing]);
    let done = loop {
        match timeout(every, completing.join_next()).await {
            Ok(done) => break done.expect("there is one task"),
            // The other end is there as long as the tasks are.
            Err(_) => _ = said.send(Ask::KeepLease(lease.clone())),
        }
    };
    let failure = match done {
        Ok(Ok(answer)) => Ok(answer.into()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(panic) => Err(panic.to_string()),
    };
    let answer = failure.unwrap_or_else(|error| {
        tracing::warn!(job = lease.job_id, error, "the lent model failed");
        Completion { error: "model_failed".into(), retryable: true, ..Default::default() }
    });
    let _ = said.send(Ask::Completion(Completion { job_id: lease.job_id, lease_id: lease.lease_id, ..answer }));
}

/// What says that a job is still worked on.
fn lease_of(job: &Job) -> KeepLease {
    KeepLease { job_id: job.job_id.clone(), lease_id: job.lease_id.clone() }
}

/// After how long a job's lease is to be extended.
fn keep_every(job: &Job) -> Duration {
    let end = job.lease_expire_time.and_then(|time| SystemTime::try_from(time).ok());
    let left = end.and_then(|end| end.duration_since(SystemTime::now()).ok()).unwrap_or_default();
    (left / 3).clamp(OFTEN, SELDOM)
}

impl From<Ask> for AttachRequest {
    fn from(kind: Ask) -> Self {
        Self { kind: Some(kind) }
    }
}

impl From<Hello> for AttachRequest {
    fn from(hello: Hello) -> Self {
        Ask::Hello(hello).into()
    }
}

impl From<String> for Completion {
    fn from(text: String) -> Self {
        Self { text, ..Default::default() }
    }
}

impl From<&str> for Completion {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}
