//! A handle on one session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::assembly::{Assembly, Degraded};
use crate::client::Client;
use crate::connection::Deadline;
use crate::error::{Error, ErrorKind};
use crate::fallback::make_up;
use crate::ids::fill;
use crate::queue::MAX_MESSAGES;
use crate::rpc::{OfSession, Rpc, old_messages};
use crate::streams::Replies;
use crate::types::part::Kind;
use crate::types::*;

/// A handle on one session of an agent. It remembers its last assembly, so that replies carry only what is new. Clones share
/// what is remembered.
///
/// While the service is away, [`assemble`](Self::assemble) answers a context made by the client, marked `degraded`; what is
/// written waits and is sent before the next call; [`ingest`](Self::ingest), [`ingest_batch`](Self::ingest_batch),
/// [`after_turn`](Self::after_turn) and [`report_usage`](Self::report_usage) then answer an empty reply. Each of these calls may
/// choose for itself, by [`bearing`](Self::bearing) and [`failing`](Self::failing). Requests need no session: the handle sets it. A call whose future is dropped is not borne: for deadlines use
/// [`Builder::timeout`](crate::Builder::timeout).
#[derive(Clone)]
pub struct Session {
    client: Client,
    session: Arc<SessionRef>,
    state: Arc<Mutex<State>>,
    /// What its calls do while the service is away. None: as the client does.
    fallback: Option<bool>,
}

#[derive(Default)]
struct State {
    /// What the service knows that is held.
    held: Option<Assembly>,
    /// The last good assembly, for contexts made without the service.
    last: Option<Assembly>,
    /// What was handed over since.
    later: Vec<Message>,
}

impl State {
    fn hand_over(&mut self, messages: impl IntoIterator<Item = Message>) {
        self.later.extend(messages);
        let surplus = self.later.len().saturating_sub(MAX_MESSAGES);
        self.later.drain(..surplus);
    }
}

impl Session {
    pub(crate) fn new(client: Client, session: SessionRef) -> Self {
        Self { client, session: Arc::new(session), state: Arc::default(), fallback: None }
    }

    /// The same session, whose calls bear that the service is away although the client does not: `session.bearing().assemble(…)`.
    /// Without a queue nothing of them is queued, and writes fail all the same.
    #[must_use]
    pub fn bearing(&self) -> Self {
        Self { fallback: Some(true), ..self.clone() }
    }

    /// The same session, whose calls fail while the service is away although the client bears it: `session.failing().ingest(…)`.
    /// Nothing of them is queued.
    #[must_use]
    pub fn failing(&self) -> Self {
        Self { fallback: Some(false), ..self.clone() }
    }

    /// What names the session in every call.
    pub fn session(&self) -> &SessionRef {
        &self.session
    }

    /// How many messages of the session wait for the service to come back.
    pub fn pending(&self) -> usize {
        self.client.count(Some(&self.session))
    }

    /// Sends what waits, the oldest first.
    pub async fn flush(&self) -> Result<(), Error> {
        self.client.flush_of(&self.session, None).await
    }

    /// Answers the whole context for one model call. It stores `ingest` first.
    ///
    /// What is held of the last assembly does not travel again. A reply that does not fit it is
    /// [`DeltaMismatch`](ErrorKind::DeltaMismatch); the next call then gets everything.
    pub async fn assemble(&self, request: AssembleRequest) -> Result<Assembly, Error> {
        let held = self.state().held.clone();
        self.assembled(request, held, None).await
    }

    /// [`assemble`](Self::assemble) beside the host's own list, for the degraded case alone: while the service is away the context
    /// is made of it, so that a handle that has seen nothing yet does not answer an empty one. It is not sent.
    pub async fn assemble_beside(&self, request: AssembleRequest, host: &[Message]) -> Result<Assembly, Error> {
        let held = self.state().held.clone();
        self.assembled(request, held, Some(host)).await
    }

    /// [`assemble`](Self::assemble) that asks for the whole list again.
    pub async fn assemble_whole(&self, request: AssembleRequest) -> Result<Assembly, Error> {
        self.assembled(request, None, None).await
    }

    /// Assembles and projects for Codex in one call. Give the turn's `prompt`, and in `projection` the binding of the last
    /// projection with the native thread in it; its target need not be set. Store the binding of the answer with the thread.
    pub async fn project_codex(&self, mut request: AssembleRequest) -> Result<ProjectResponse, Error> {
        let options = request.projection.get_or_insert_default();
        options.set_target(ProjectionTarget::Codex);
        let (options, prompt) = (options.clone(), request.prompt.clone());
        let mut assembly = self.assemble(request).await?;
        let Some(degraded) = assembly.degraded else {
            return Ok(Arc::make_mut(&mut assembly.response).projection.take().unwrap_or_default());
        };
        let is_bound = options.binding.as_ref().is_some_and(|binding| !binding.thread_id.is_empty());
        let action = if is_bound { ProjectionAction::Resume } else { ProjectionAction::Start };
        let texts = prompt.into_iter().filter_map(|part| match part.kind {
            Some(Kind::Text(part)) => Some(part.text),
            _ => None,
        });
        let warning = format!("degraded: {}, the context of the session is not in this projection", degraded.reason);
        Ok(ProjectResponse {
            target: options.target,
            renderer: options.renderer,
            instructions: options.base_instructions,
            prompt: texts.collect::<Vec<_>>().join("\n"),
            action: action.into(),
            binding: options.binding,
            warnings: vec![warning],
            ..Default::default()
        })
    }

    /// Stores one message durably. The same id with other content is [`MessageConflict`](ErrorKind::MessageConflict).
    pub async fn ingest(&self, mut request: IngestRequest) -> Result<IngestResponse, Error> {
        request.session = Some(self.session().clone());
        self.write(request, |request| AfterTurnRequest {
            messages: request.message.into_iter().collect(),
            request_id: request.request_id,
            ..Default::default()
        })
        .await
    }

    /// Stores messages durably, all or none.
    pub async fn ingest_batch(&self, mut request: IngestBatchRequest) -> Result<IngestBatchResponse, Error> {
        request.session = Some(self.session().clone());
        self.write(request, |request| AfterTurnRequest {
            messages: request.messages,
            request_id: request.request_id,
            ..Default::default()
        })
        .await
    }

    /// Says that a turn is over and hands over what it added. Conflicts are listed and stop nothing.
    pub async fn after_turn(&self, mut request: AfterTurnRequest) -> Result<AfterTurnResponse, Error> {
        request.session = Some(self.session().clone());
        self.write(request, |request| request).await
    }

    /// Says what the provider billed for an assembly, or that it refused one for its length.
    pub async fn report_usage(&self, mut request: ReportUsageRequest) -> Result<ReportUsageResponse, Error> {
        request.session = Some(self.session().clone());
        match self.behind(request).await {
            Err(error) if self.bears(&error) => Ok(ReportUsageResponse::default()),
            done => done,
        }
    }

    /// Compacts the stored view, or proposes to.
    pub async fn compact(&self, mut request: CompactRequest) -> Result<CompactResponse, Error> {
        request.session = Some(self.session().clone());
        self.behind(request).await
    }

    /// Says what the harness did to its own transcript.
    pub async fn record_host_change(
        &self,
        mut request: RecordHostChangeRequest,
    ) -> Result<RecordHostChangeResponse, Error> {
        request.session = Some(self.session().clone());
        let reply = self.behind(request).await?;
        self.forget();
        Ok(reply)
    }

    /// Empties the session's view. Rows stay.
    pub async fn reset(&self, mut request: ResetSessionRequest) -> Result<ResetSessionResponse, Error> {
        request.session = Some(self.session().clone());
        let reply = self.behind(request).await?;
        self.forget();
        Ok(reply)
    }

    /// Ends the conversation for now. A later write opens it again.
    pub async fn end(&self, mut request: EndSessionRequest) -> Result<EndSessionResponse, Error> {
        request.session = Some(self.session().clone());
        self.behind(request).await
    }

    /// Erases the session and everything derived from it, what waits to be sent included. This cannot be undone.
    pub async fn delete(&self, mut request: DeleteRequest) -> Result<DeleteResponse, Error> {
        request.session = Some(self.session().clone());
        let reply = self.behind(request).await?;
        self.forget();
        Ok(reply)
    }

    /// Calls another rpc about the session, which the request's type names: Bootstrap, UpdateModel, GetStatus, Search …
    pub async fn call<R: OfSession>(&self, mut request: R) -> Result<R::Reply, Error> {
        request.set_session(self.session().clone());
        self.client.call(request).await
    }

    /// Prepares the context of a child of this session before it starts. What waits is sent first: a fork is to show it.
    pub async fn prepare_subagent(
        &self,
        mut request: PrepareSubagentSpawnRequest,
    ) -> Result<PrepareSubagentSpawnResponse, Error> {
        request.parent = Some(self.session().clone());
        self.behind(request).await
    }

    /// Takes a preparation of this session back. Safe twice and after expiry.
    pub async fn rollback_subagent(
        &self,
        spawn_token: impl Into<String>,
    ) -> Result<RollbackSubagentSpawnResponse, Error> {
        let (spawn_token, parent) = (spawn_token.into(), Some(self.session().clone()));
        self.client.call(RollbackSubagentSpawnRequest { spawn_token, parent }).await
    }

    /// Says that this session, a child, ended. An unknown child is no error.
    pub async fn end_as_subagent(&self, mut request: EndSubagentRequest) -> Result<EndSubagentResponse, Error> {
        request.child = Some(self.session().clone());
        self.client.call(request).await
    }

    /// Streams the session's rows as they are stored: the session, its messages in order, its summaries.
    pub async fn export(&self, mut request: ExportRequest) -> Result<Replies<ExportResponse>, Error> {
        request.session = Some(self.session().clone());
        self.client.export(request).await
    }

    /// Streams what happens to the session, from now or from a resume position. The handle must know the session's id: a key
    /// names another session over time.
    pub async fn watch(&self, mut request: WatchRequest) -> Result<Replies<WatchResponse>, Error> {
        if self.session.session_id.is_empty() {
            return Err(Error::invalid("session_id", "is needed to watch one session: events know sessions by id"));
        }
        request.agent_id = self.session.agent_id.clone();
        request.session_id = self.session.session_id.clone();
        self.client.watch(request).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn assembled(
        &self,
        mut request: AssembleRequest,
        held: Option<Assembly>,
        host: Option<&[Message]>,
    ) -> Result<Assembly, Error> {
        let deadline = self.deadline::<AssembleRequest>();
        request.session = Some(self.session().clone());
        request.set_ids();
        if let Some(held) = &held {
            request.known_context_hash = held.response.context_hash.clone();
            let projection = held.response.context_projection.as_ref();
            request.known_epoch = projection.map_or_else(String::new, |projection| projection.epoch.clone());
        }
        let reply = match self.sent(&request, deadline).await {
            Err(error) if self.bears(&error) => return self.bear_assemble(request, error, host).await,
            reply => reply?,
        };
        let whole = Assembly::extend(held.as_ref().map_or(&[], |held| &held.items), reply);
        let mut state = self.state();
        state.held = whole.as_ref().ok().cloned();
        if state.held.is_some() {
            state.last = state.held.clone();
            state.later.clear();
        }
        whole
    }

    /// The context without the service.
    async fn bear_assemble(
        &self,
        mut request: AssembleRequest,
        error: Error,
        host: Option<&[Message]>,
    ) -> Result<Assembly, Error> {
        let mut unqueued = if self.client.falls_back() { 0 } else { request.ingest.len() };
        if unqueued == 0 && !request.ingest.is_empty() {
            let entry = AfterTurnRequest {
                messages: request.ingest.clone(),
                request_id: request.request_id.clone(),
                ..Default::default()
            };
            match self.add(entry).await {
                Err(full) if full.kind() == ErrorKind::QueueFull => unqueued = request.ingest.len(),
                added => added?,
            }
        }
        let mut state = self.state();
        let last = state.last.as_ref();
        let held = last.map_or(&[][..], |last| &last.items);
        let mut ingest = Vec::new();
        if let Some(host) = host {
            // What is ingested stands in the host's list already.
            ingest = std::mem::take(&mut request.ingest);
            request.live = Some(LiveList { messages: host.to_vec(), ..Default::default() });
        }
        let response = make_up(&request, held, last.map(|last| &*last.response), &state.later);
        ingest.append(&mut request.ingest);
        state.hand_over(ingest);
        let degraded = Degraded { reason: error.reason_or_code().to_owned(), error, unqueued };
        Ok(Assembly::made_up(response, degraded))
    }

    /// Writes messages, or queues the entry that stands for them.
    async fn write<R: Rpc>(
        &self,
        mut request: R,
        entry: impl FnOnce(R) -> AfterTurnRequest,
    ) -> Result<R::Reply, Error> {
        let deadline = self.deadline::<R>();
        request.set_ids();
        let sent = self.sent(&request, deadline).await;
        let entry = entry(request);
        let new = entry.messages[old_messages(&entry)..].to_vec();
        let reply = match sent {
            Err(error) if self.bears(&error) && self.client.falls_back() => {
                self.add(entry).await?;
                R::Reply::default()
            }
            sent => sent?,
        };
        self.state().hand_over(new);
        Ok(reply)
    }

    /// Calls after what waits was sent.
    async fn behind<R: Rpc>(&self, mut request: R) -> Result<R::Reply, Error> {
        let deadline = self.deadline::<R>();
        request.set_ids();
        self.sent(&request, deadline).await
    }

    /// Sends what waits, then the request, before one deadline.
    async fn sent<R: Rpc>(&self, request: &R, deadline: Deadline) -> Result<R::Reply, Error> {
        self.client.flush_of(&self.session, deadline).await?;
        self.client.connection().unary(request, deadline).await
    }

    fn deadline<R: Rpc>(&self) -> Deadline {
        self.client.connection().deadline(R::METHOD)
    }

    async fn add(&self, mut entry: AfterTurnRequest) -> Result<(), Error> {
        entry.session = Some(self.session().clone());
        fill(&mut entry.request_id);
        self.client.add(entry).await
    }

    fn bears(&self, error: &Error) -> bool {
        self.fallback.unwrap_or(self.client.falls_back()) && error.is_borne()
    }

    /// Drops what the session was, after a change.
    fn forget(&self) {
        let mut state = self.state();
        state.last = None;
        state.later.clear();
    }
}
