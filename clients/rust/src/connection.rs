//! How requests travel: deadlines, metadata, attempts.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::uri::PathAndQuery;
use prost::Message;
use prost::bytes::{Buf, BufMut, Bytes};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_stream::Stream;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, Streaming};

use crate::affinity::{SESSION_HEADER, affinity};
use crate::attempts::{Absence, Attempts};
use crate::breaker::{Breaker, HEALTH, PROBE, is_there};
use crate::error::{Error, ErrorKind};
use crate::rpc::{Method, Rpc};
use crate::settings::Metadata;
use crate::trace;
use crate::types::SessionRef;

/// When a call must be over. None: there is no deadline.
pub(crate) type Deadline = Option<Instant>;

/// A connection to one server.
pub(crate) struct Connection {
    endpoint: Endpoint,
    /// Made at the first call, so that a client can be made where no runtime is.
    channel: OnceLock<Channel>,
    authorization: Option<MetadataValue<Ascii>>,
    metadata: Option<Metadata>,
    timeouts: HashMap<String, Option<Duration>>,
    max_message_bytes: usize,
    retry_for: Duration,
    absence: Absence,
    /// None: each call waits for the service by itself.
    breaker: Option<Arc<Breaker>>,
}

impl Connection {
    pub(crate) fn new(
        endpoint: Endpoint,
        authorization: Option<MetadataValue<Ascii>>,
        metadata: Option<Metadata>,
        timeouts: HashMap<String, Option<Duration>>,
        max_message_bytes: usize,
        retry_for: Duration,
        has_breaker: bool,
    ) -> Self {
        let (channel, absence) = (OnceLock::new(), Absence::default());
        let breaker = has_breaker.then(Arc::default);
        Self { endpoint, channel, authorization, metadata, timeouts, max_message_bytes, retry_for, absence, breaker }
    }

    /// The deadline of a call that begins now.
    pub(crate) fn deadline(&self, method: &Method) -> Deadline {
        let timeout = self.timeouts.get(method.name).copied().unwrap_or(method.timeout);
        timeout.map(|timeout| Instant::now() + timeout)
    }

    /// One request whose ids are set, one reply.
    pub(crate) async fn unary<R: Rpc>(&self, request: &R, deadline: Deadline) -> Result<R::Reply, Error> {
        let message = self.encoded(request)?;
        let admission = match &self.breaker {
            Some(breaker) => Some(breaker.admit(|| self.question()).await?),
            None => None,
        };
        let once = || async {
            let request = self.request(tokio_stream::once(message.clone()), request.session(), deadline);
            let path = PathAndQuery::from_static(R::METHOD.path);
            Ok(self.grpc().await?.client_streaming(request, path, Encoded).await?.into_inner())
        };
        let done = self.attempts(R::METHOD, deadline, || true, once).await;
        if let Some(admission) = &admission {
            match &done {
                Ok(_) => admission.answered(),
                Err(error) => admission.failed(error),
            }
        }
        decoded(done?)
    }

    /// Asks whether the server serves.
    fn question(&self) -> impl Future<Output = bool> + Send + use<> {
        let deadline = Some(Instant::now() + PROBE);
        let request = self.request(tokio_stream::once(Bytes::new()), None, deadline);
        let grpc = self.grpc();
        async move {
            let asked = async {
                let reply = grpc.await?.client_streaming(request, PathAndQuery::from_static(HEALTH), Encoded).await?;
                Ok(reply.into_inner())
            };
            is_there(within(deadline, asked).await)
        }
    }

    /// One request, many replies.
    pub(crate) async fn replies(
        &self,
        method: &Method,
        request: &impl Message,
        session: Option<&SessionRef>,
        deadline: Deadline,
    ) -> Result<Streaming<Bytes>, Error> {
        let message = self.encoded(request)?;
        let once = || self.open(method, tokio_stream::once(message.clone()), session, deadline);
        self.attempts(method, deadline, || true, once).await
    }

    /// Opens a stream once.
    pub(crate) async fn open(
        &self,
        method: &Method,
        requests: impl Stream<Item = Bytes> + Send + 'static,
        session: Option<&SessionRef>,
        deadline: Deadline,
    ) -> Result<Streaming<Bytes>, Error> {
        let path = PathAndQuery::from_static(method.path);
        let request = self.request(requests, session, deadline);
        Ok(self.grpc().await?.streaming(request, path, Encoded).await?.into_inner())
    }

    /// Makes attempts until one succeeds, or none may follow. `repeatable`: whether another would send the same.
    pub(crate) async fn attempts<T, F: Future<Output = Result<T, Error>>>(
        &self,
        method: &Method,
        deadline: Deadline,
        repeatable: impl Fn() -> bool,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, Error> {
        let mut attempts = Attempts::new(method, self.retry_for, &self.absence);
        loop {
            let done = within(deadline, attempt()).await;
            let pause = match &done {
                Ok(_) => {
                    attempts.answered();
                    None
                }
                Err(error) if repeatable() => attempts.pause(error),
                Err(_) => None,
            };
            match pause {
                Some(pause) if deadline.is_none_or(|end| Instant::now() + pause < end) => sleep(pause).await,
                _ => return done,
            }
        }
    }

    /// What a request carries besides its messages.
    fn request<T>(&self, messages: T, session: Option<&SessionRef>, deadline: Deadline) -> Request<T> {
        let mut request = Request::new(messages);
        if let Some(metadata) = &self.metadata {
            *request.metadata_mut() = metadata();
        }
        let session = session.and_then(affinity).and_then(|name| name.parse::<MetadataValue<Ascii>>().ok());
        if let Some(session) = session
            && !request.metadata().contains_key(SESSION_HEADER)
        {
            request.metadata_mut().insert(SESSION_HEADER, session);
        }
        trace::add_current_span(request.metadata_mut());
        if let Some(authorization) = &self.authorization {
            request.metadata_mut().insert("authorization", authorization.clone());
        }
        if let Some(deadline) = deadline {
            request.set_timeout(deadline.saturating_duration_since(Instant::now()));
        }
        request
    }

    fn grpc(&self) -> impl Future<Output = Result<Grpc<Channel>, Error>> + Send + use<> {
        let channel = self.channel.get_or_init(|| self.endpoint.connect_lazy()).clone();
        let mut grpc = Grpc::new(channel)
            .max_decoding_message_size(self.max_message_bytes)
            .max_encoding_message_size(self.max_message_bytes);
        async move {
            grpc.ready().await.map_err(|error| Error::new(Code::Unavailable, "", error.to_string()))?;
            Ok(grpc)
        }
    }

    /// A message as it travels. An error where it is too large to.
    pub(crate) fn encoded(&self, message: &impl Message) -> Result<Bytes, Error> {
        let encoded = message.encode_to_vec();
        self.fits(encoded.len())?;
        Ok(encoded.into())
    }

    /// An error where a request is too large to travel.
    pub(crate) fn fits(&self, size: usize) -> Result<(), Error> {
        if size <= self.max_message_bytes {
            return Ok(());
        }
        let problem = format!("a request of {size} bytes exceeds max_message_bytes, {}", self.max_message_bytes);
        Err(Error::new(Code::ResourceExhausted, "", problem))
    }
}

/// A reply as it came.
pub(crate) fn decoded<M: Message + Default>(reply: Bytes) -> Result<M, Error> {
    M::decode(reply).map_err(|error| Error::new(Code::Internal, "", format!("the reply cannot be read: {error}")))
}

/// What a call answers, or that its deadline passed.
pub(crate) async fn within<T>(deadline: Deadline, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let Some(end) = deadline else { return call.await };
    match timeout_at(end, call).await {
        // tonic keeps the deadline as well, to the microsecond; the runtime's clock ticks in milliseconds.
        Ok(Err(error))
            if error.kind() == ErrorKind::Unavailable && Instant::now() + Duration::from_millis(2) >= end =>
        {
            Err(Error::deadline())
        }
        Ok(done) => done,
        Err(_) => Err(Error::deadline()),
    }
}

/// Messages that are encoded already: once for all attempts.
#[derive(Clone, Copy)]
struct Encoded;

impl Codec for Encoded {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Encoded {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put(message);
        Ok(())
    }
}

impl Decoder for Encoded {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}
