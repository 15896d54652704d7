//! One call: the request that Python reads, and the reply that Python writes.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use pyo3::pyclass;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, Sleep};

use crate::events::{Event, Events, Key};
use crate::messages::{Messages, Next};
use crate::status::{self, Code, Refusal};

/// What Python has a call do. Reading has a way of its own: it goes on while a write waits.
pub enum Command {
    Headers(HeaderMap),
    Write(Bytes),
    /// Message and status at once.
    Reply(Bytes),
    Finish(HeaderMap),
}

/// A call as Python holds it. It is over when its status is sent, the client is gone or told that
/// its time has passed; what Python asks for afterwards does nothing.
#[pyclass(frozen)]
pub struct Call {
    pub key: Key,
    pub path: String,
    pub headers: HeaderMap,
    pub peer: Arc<str>,
    pub certificate: Option<Arc<[u8]>>,
    pub timeout: Option<Duration>,
    pub commands: mpsc::UnboundedSender<Command>,
    pub reads: mpsc::UnboundedSender<()>,
}

/// What all calls of a connection share.
pub struct Connection {
    pub events: Arc<Events>,
    pub peer: Arc<str>,
    pub certificate: Option<Arc<[u8]>>,
    pub largest: usize,
}

/// Tells Python that the client is gone where a call is dropped before its end.
struct Watch {
    events: Arc<Events>,
    key: Key,
    over: bool,
}

impl Watch {
    fn end(&mut self, event: Option<Event>) {
        self.over = true;
        if let Some(event) = event {
            self.events.push(event);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.over {
            self.events.push(Event::Gone(self.key));
        }
    }
}

pub type Answer = Result<Response<Reply>, Infallible>;

/// Answers a request by what Python says. Dropped where the client goes away.
pub async fn answer(request: Request<Incoming>, connection: Arc<Connection>, key: Key) -> Answer {
    let (parts, body) = request.into_parts();
    if let Some(refused) = unfit(&parts) {
        return Ok(refused);
    }
    let events = connection.events.clone();
    let mut messages = Messages::new(body, &parts.headers, connection.largest);
    let timeout = status::timeout(&parts.headers);
    let (commands, mut commanded) = mpsc::unbounded_channel();
    let (reads, mut asked) = mpsc::unbounded_channel();
    let call = Box::new(Call {
        key,
        path: parts.uri.path().to_owned(),
        headers: parts.headers,
        peer: connection.peer.clone(),
        certificate: connection.certificate.clone(),
        timeout,
        commands,
        reads,
    });
    let mut watch = Watch {
        events: events.clone(),
        key,
        over: false,
    };
    let first = match at_once(&mut messages).await {
        Some(Next::Message(message)) => Some(message),
        Some(Next::Refused(refusal)) => {
            watch.end(None);
            messages.linger();
            return Ok(trailers_only(refusal.trailers()));
        }
        Some(Next::Gone) => {
            watch.end(None);
            return Ok(trailers_only(HeaderMap::new()));
        }
        // Python asks, and hears it then.
        Some(Next::End) | None => None,
    };
    events.push(Event::Begun(call, first));
    let mut deadline = maybe(timeout);
    let mut wanted = 0;
    loop {
        tokio::select! {
            biased;
            command = commanded.recv() => match command {
                Some(Command::Reply(message)) => {
                    watch.end(None);
                    messages.linger();
                    return Ok(head(HeaderMap::new(), Reply::whole(message)));
                }
                Some(Command::Finish(trailers)) => {
                    watch.end(None);
                    messages.linger();
                    return Ok(trailers_only(trailers));
                }
                Some(Command::Headers(headers)) => {
                    let reply = stream(messages, asked, wanted, commanded, None, watch, timeout_left(&deadline));
                    return Ok(head(headers, reply));
                }
                Some(Command::Write(message)) => {
                    let reply = stream(messages, asked, wanted, commanded, Some(message), watch, timeout_left(&deadline));
                    return Ok(head(HeaderMap::new(), reply));
                }
                None => {
                    watch.end(None);
                    return Ok(trailers_only(unanswered()));
                }
            },
            Some(()) = asked.recv() => wanted += 1,
            next = messages.next(), if wanted > 0 => {
                wanted -= 1;
                if let Err(refusal) = tell(&events, key, next) {
                    watch.end(Some(Event::Refused(key)));
                    messages.linger();
                    return Ok(trailers_only(refusal.trailers()));
                }
            }
            () = &mut deadline => {
                watch.end(Some(Event::Expired(key)));
                messages.linger();
                return Ok(trailers_only(late()));
            }
        }
    }
}

/// The first message where it came with the headers, as it mostly does: Python need not ask then.
async fn at_once(messages: &mut Messages) -> Option<Next> {
    for _ in 0..2 {
        tokio::select! {
            biased;
            next = messages.next() => return Some(next),
            () = std::future::ready(()) => {}
        }
        tokio::task::yield_now().await;
    }
    None
}

/// Tells Python of what was read.
fn tell(events: &Events, key: Key, next: Next) -> Result<(), Refusal> {
    match next {
        Next::Message(message) => events.push(Event::Message(key, message)),
        Next::End => events.push(Event::Ended(key)),
        Next::Gone => events.push(Event::Gone(key)),
        Next::Refused(refusal) => return Err(refusal),
    }
    Ok(())
}

/// The reply of a call whose headers are sent: two tasks go on with it, and end with it.
fn stream(
    mut messages: Messages,
    mut asked: mpsc::UnboundedReceiver<()>,
    mut wanted: usize,
    mut commanded: mpsc::UnboundedReceiver<Command>,
    mut written: Option<Bytes>,
    mut watch: Watch,
    left: Option<Duration>,
) -> Reply {
    // A part is handed over when HTTP/2 has room for it, and waits nowhere else.
    let (parts, replied) = mpsc::channel(1);
    let (events, key) = (watch.events.clone(), watch.key);
    let (refuse, mut refused) = mpsc::channel(1);
    let (over, mut ended) = oneshot::channel::<()>();
    tokio::spawn(async move {
        loop {
            if wanted == 0 {
                tokio::select! {
                    biased;
                    _ = &mut ended => break,
                    asked = asked.recv() => match asked {
                        Some(()) => wanted = 1,
                        None => break,
                    },
                }
            }
            let next = tokio::select! {
                biased;
                _ = &mut ended => break,
                next = messages.next() => next,
            };
            wanted -= 1;
            if matches!(next, Next::Gone) {
                events.push(Event::Gone(key));
                return;
            }
            if let Err(refusal) = tell(&events, key, next) {
                let _ = refuse.send(refusal).await;
                break;
            }
        }
        messages.linger();
    });
    tokio::spawn(async move {
        let mut deadline = maybe(left);
        let trailers = loop {
            let command = match written.take() {
                Some(message) => Some(Command::Write(message)),
                None => tokio::select! {
                    biased;
                    () = parts.closed() => break None,
                    command = commanded.recv() => command,
                    Some(refusal) = refused.recv() => {
                        watch.end(Some(Event::Refused(watch.key)));
                        break Some(refusal.trailers());
                    }
                    () = &mut deadline => {
                        watch.end(Some(Event::Expired(watch.key)));
                        break Some(late());
                    }
                },
            };
            match command {
                Some(Command::Write(message)) => {
                    let taken = async {
                        parts.send(Frame::data(message)).await.ok()?;
                        parts.reserve().await.ok().map(drop)
                    };
                    tokio::select! {
                        biased;
                        done = taken => match done {
                            Some(()) => watch.events.push(Event::Written(watch.key)),
                            None => break None,
                        },
                        () = &mut deadline => {
                            watch.end(Some(Event::Expired(watch.key)));
                            break Some(late());
                        }
                    }
                }
                Some(Command::Reply(message)) => {
                    watch.end(None);
                    let _ = parts.send(Frame::data(message)).await;
                    break Some(status::trailers(0, ""));
                }
                Some(Command::Finish(trailers)) => {
                    watch.end(None);
                    break Some(trailers);
                }
                Some(Command::Headers(_)) => {}
                None => {
                    watch.end(None);
                    break Some(unanswered());
                }
            }
        };
        drop(watch);
        if let Some(trailers) = trailers {
            let _ = parts.send(Frame::trailers(trailers)).await;
        }
        drop(over);
    });
    Reply::Parts(replied)
}

/// The body of a reply.
pub enum Reply {
    Whole(Option<Bytes>, Option<HeaderMap>),
    Parts(mpsc::Receiver<Frame<Bytes>>),
}

impl Reply {
    fn whole(message: Bytes) -> Self {
        Self::Whole(Some(message), Some(status::trailers(0, "")))
    }

    pub fn none() -> Self {
        Self::Whole(None, None)
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(message, trailers) => Poll::Ready(match message.take() {
                Some(message) => Some(Ok(Frame::data(message))),
                None => trailers
                    .take()
                    .map(|trailers| Ok(Frame::trailers(trailers))),
            }),
            Self::Parts(parts) => parts.poll_recv(context).map(|part| part.map(Ok)),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None, None))
    }
}

fn head(headers: HeaderMap, reply: Reply) -> Response<Reply> {
    let mut response = Response::new(reply);
    *response.headers_mut() = headers;
    response
        .headers_mut()
        .insert("content-type", HeaderValue::from_static("application/grpc"));
    response.headers_mut().insert(
        "grpc-accept-encoding",
        HeaderValue::from_static("identity,deflate,gzip"),
    );
    response
}

/// A status without a message goes out as headers alone.
fn trailers_only(trailers: HeaderMap) -> Response<Reply> {
    head(trailers, Reply::none())
}

/// What no client of gRPC sends.
fn unfit(parts: &http::request::Parts) -> Option<Response<Reply>> {
    let kind = parts.headers.get("content-type").map(HeaderValue::as_bytes);
    let code = if parts.method != http::Method::POST {
        http::StatusCode::METHOD_NOT_ALLOWED
    } else if !kind.is_some_and(|kind| kind.starts_with(b"application/grpc")) {
        http::StatusCode::UNSUPPORTED_MEDIA_TYPE
    } else {
        return None;
    };
    let mut response = Response::new(Reply::none());
    *response.status_mut() = code;
    Some(response)
}

fn late() -> HeaderMap {
    status::trailers(Code::DeadlineExceeded as i32, "Deadline Exceeded")
}

fn unanswered() -> HeaderMap {
    status::trailers(
        Code::Internal as i32,
        "the call was dropped without a status",
    )
}

/// Waits so long; without a time for good.
struct Deadline(Option<Pin<Box<Sleep>>>);

fn maybe(timeout: Option<Duration>) -> Deadline {
    Deadline(timeout.map(|timeout| Box::pin(sleep(timeout))))
}

fn timeout_left(deadline: &Deadline) -> Option<Duration> {
    let sleep = deadline.0.as_ref()?;
    Some(
        sleep
            .deadline()
            .saturating_duration_since(tokio::time::Instant::now()),
    )
}

impl Future for Deadline {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.0 {
            Some(sleep) => sleep.as_mut().poll(context),
            None => Poll::Pending,
        }
    }
}
