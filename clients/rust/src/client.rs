//! The client of one server.

use std::sync::Arc;

use tokio::time::Instant;
use tonic::Code;

use crate::connection::{Connection, Deadline};
use crate::error::Error;
use crate::queue::{Queue, Rejected};
use crate::rpc::{AFTER_TURN, Rpc};
use crate::session::Session;
use crate::settings::{BuildError, Builder};
use crate::types::{AfterTurnRequest, SessionRef};

/// A client of one server. Clones share its connection and its queue, and may be used at once.
///
/// The first call connects, in the tokio runtime that makes it. What waits to be sent when the last clone is dropped stays in
/// the spill file, if there is one.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    connection: Connection,
    queue: Option<Queue>,
}

impl Client {
    /// A client with the default settings, of a server at `target`: [`DEFAULT_TARGET`](crate::DEFAULT_TARGET), say. Nothing is
    /// sent before the first call.
    pub fn new(target: impl Into<String>) -> Result<Self, BuildError> {
        Self::builder(target).build()
    }

    /// The settings of a client, to change and to build it from.
    pub fn builder(target: impl Into<String>) -> Builder {
        Builder::new(target.into())
    }

    pub(crate) fn from_parts(connection: Connection, queue: Option<Queue>) -> Self {
        Self { inner: Arc::new(Inner { connection, queue }) }
    }

    /// Calls the rpc that the request's type names. Missing ids are set; what fails is sent again where that is safe.
    ///
    /// ```no_run
    /// # async fn example(client: contextengine::Client) -> Result<(), contextengine::Error> {
    /// use contextengine::types::EnginesListRequest;
    ///
    /// let engines = client.call(EnginesListRequest::default()).await?.engines;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn call<R: Rpc>(&self, mut request: R) -> Result<R::Reply, Error> {
        request.set_ids();
        self.connection().unary(&request, self.connection().deadline(R::METHOD)).await
    }

    /// A handle on one session, which need not exist yet. Nothing is sent.
    pub fn session(&self, agent_id: impl Into<String>, session_id: impl Into<String>) -> Session {
        self.session_of(SessionRef { agent_id: agent_id.into(), session_id: session_id.into(), ..Default::default() })
    }

    /// A handle on the session that a reference names: by id, by key, or by both.
    pub fn session_of(&self, session: SessionRef) -> Session {
        Session::new(self.clone(), session)
    }

    /// How many messages wait for the service to come back.
    pub fn pending(&self) -> usize {
        self.count(None)
    }

    /// What had waited and was then refused for what it is, the newest last; the last thousand.
    pub fn rejected(&self) -> Vec<Rejected> {
        self.inner.queue.as_ref().map_or_else(Vec::new, Queue::rejected)
    }

    /// Sends what waits, of all sessions, the oldest first. Where some of it cannot be sent it goes on with the other sessions,
    /// all within one deadline, and answers the first error.
    pub async fn flush(&self) -> Result<(), Error> {
        let deadline = self.connection().deadline(&AFTER_TURN);
        let mut first = Ok(());
        for session in self.inner.queue.iter().flat_map(Queue::sessions) {
            let sent = self.flush_of(&session, deadline).await;
            let is_over = sent.is_err() && deadline.is_some_and(|end| end <= Instant::now());
            first = first.and(sent);
            if is_over {
                break;
            }
        }
        first
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.inner.connection
    }

    /// Whether calls of session handles are borne.
    pub(crate) fn falls_back(&self) -> bool {
        self.inner.queue.is_some()
    }

    pub(crate) fn count(&self, session: Option<&SessionRef>) -> usize {
        self.inner.queue.as_ref().map_or(0, |queue| queue.count(session))
    }

    /// Queues what could not be sent.
    pub(crate) async fn add(&self, entry: AfterTurnRequest) -> Result<(), Error> {
        match &self.inner.queue {
            None => Ok(()),
            Some(queue) if !queue.is_spilled => queue.add(entry),
            Some(_) => {
                let inner = self.inner.clone();
                let write = move || inner.queue.as_ref().map_or(Ok(()), |queue| queue.add(entry));
                tokio::task::spawn_blocking(write).await.unwrap_or_else(|ended| {
                    Err(Error::new(
                        Code::ResourceExhausted,
                        "QUEUE_FULL",
                        format!("the spill file was not written: {ended}"),
                    ))
                })
            }
        }
    }

    /// Sends what waits of a session, before a deadline.
    ///
    /// Calls need not wait for each other: an entry goes only after the one before it was answered, and one that two calls send
    /// is stored once.
    pub(crate) async fn flush_of(&self, session: &SessionRef, until: Deadline) -> Result<(), Error> {
        let Some(queue) = &self.inner.queue else { return Ok(()) };
        let own = self.connection().deadline(&AFTER_TURN);
        let deadline = [until, own].into_iter().flatten().min();
        while let Some(entry) = queue.first(session) {
            match self.connection().unary(&*entry, deadline).await {
                Ok(_) => _ = queue.sent(&entry),
                Err(error) => queue.failed(&entry, error)?,
            }
        }
        Ok(())
    }
}
