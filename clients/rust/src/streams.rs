//! Streams: whole sessions in and out, what happens to them, and a model that is attached.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use prost::Message as _;
use prost::bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Sleep, sleep_until};
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::Streaming;

use crate::affinity::watched;
use crate::client::Client;
use crate::connection::{Deadline, decoded, within};
use crate::error::Error;
use crate::import::Replay;
use crate::rpc::{ATTACH, EXPORT, IMPORT, WATCH};
use crate::types::*;

/// How many requests of an attached model may wait to be sent.
const MAX_UNSENT: usize = 16;

/// The replies of a stream, one by one, by [`next`](Self::next) or as a [`Stream`]. The call ends when they are dropped.
pub struct Replies<M> {
    stream: Streaming<Bytes>,
    deadline: Option<Pin<Box<Sleep>>>,
    is_over: bool,
    kind: PhantomData<fn() -> M>,
}

impl<M: prost::Message + Default> Replies<M> {
    fn new(stream: Streaming<Bytes>, deadline: Deadline) -> Self {
        let deadline = deadline.map(|end| Box::pin(sleep_until(end)));
        Self { stream, deadline, is_over: false, kind: PhantomData }
    }

    /// The next reply. None: the stream has ended, after an error as well.
    pub async fn next(&mut self) -> Option<Result<M, Error>> {
        StreamExt::next(self).await
    }
}

impl<M: prost::Message + Default> Stream for Replies<M> {
    type Item = Result<M, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let found = match Pin::new(&mut self.stream).poll_next(context) {
            Poll::Ready(Some(reply)) => Some(reply.map_err(Error::from).and_then(decoded)),
            Poll::Ready(None) => None,
            Poll::Pending => {
                let end = self.deadline.as_mut().map(|end| end.as_mut().poll(context));
                if end != Some(Poll::Ready(())) {
                    return Poll::Pending;
                }
                Some(Err(Error::deadline()))
            }
        };
        self.is_over = !matches!(found, Some(Ok(_)));
        Poll::Ready(found)
    }
}

impl Client {
    /// Stores a whole session, all or none. Messages keep the ids they have; the very same again is no error.
    pub async fn import<I>(&self, header: import_request::Header, messages: I) -> Result<ImportResponse, Error>
    where
        I: IntoIterator<Item = Message>,
        I::IntoIter: Send + 'static,
    {
        let connection = self.connection();
        let deadline = connection.deadline(&IMPORT);
        let session = header.session.clone();
        let first = ImportRequest { kind: Some(import_request::Kind::Header(header)) };
        let messages = messages.into_iter();
        let rest = messages.map(|message| ImportRequest { kind: Some(import_request::Kind::Message(message)) });
        let requests = std::iter::once(first).chain(rest).map(|request| Bytes::from(request.encode_to_vec()));
        let replay = Replay::new(requests);
        let once = || async {
            let mut replies = connection.open(&IMPORT, replay.attempt(), session.as_ref(), deadline).await?;
            let reply = replies.message().await?;
            reply.ok_or_else(|| Error::new(tonic::Code::Internal, "", "the import ended without a reply"))
        };
        let reply = connection.attempts(&IMPORT, deadline, || replay.is_whole(), once).await;
        // A request that is too large breaks the stream, which does not say why.
        connection.fits(replay.largest())?;
        decoded(reply?)
    }

    /// Streams a session's rows as they are stored: the session, its messages in order, its summaries.
    pub async fn export(&self, request: ExportRequest) -> Result<Replies<ExportResponse>, Error> {
        let deadline = self.connection().deadline(&EXPORT);
        let replies = self.connection().replies(&EXPORT, &request, request.session.as_ref(), deadline).await?;
        Ok(Replies::new(replies, deadline))
    }

    /// Streams what happens to sessions, from now or from a resume position. A stream that broke is not resumed by itself: the
    /// last `position` resumes it.
    pub async fn watch(&self, request: WatchRequest) -> Result<Replies<WatchResponse>, Error> {
        let deadline = self.connection().deadline(&WATCH);
        let session = watched(&request);
        let replies = self.connection().replies(&WATCH, &request, session.as_ref(), deadline).await?;
        Ok(Replies::new(replies, deadline))
    }

    /// Attaches a model of the caller's to the server: what it asks for comes by the replies, what is to be said goes by the
    /// sender, until either is dropped. [`lend`](Self::lend) does all of it.
    pub async fn attach(
        &self,
        hello: attach_request::Hello,
    ) -> Result<(mpsc::Sender<AttachRequest>, Replies<AttachResponse>), Error> {
        let (sender, receiver) = mpsc::channel(MAX_UNSENT);
        let requests = tokio_stream::once(hello.into()).chain(ReceiverStream::new(receiver));
        Ok((sender, self.attach_with(requests).await?))
    }

    pub(crate) async fn attach_with(
        &self,
        requests: impl Stream<Item = AttachRequest> + Send + 'static,
    ) -> Result<Replies<AttachResponse>, Error> {
        let connection = self.connection();
        let deadline = connection.deadline(&ATTACH);
        let requests = requests.map(|request| request.encode_to_vec().into());
        let replies = within(deadline, connection.open(&ATTACH, requests, None, deadline)).await?;
        Ok(Replies::new(replies, deadline))
    }
}
