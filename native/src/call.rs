//! One call: the request that Python reads, and the answer that Python gives.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use hyper::body::Incoming;
use pyo3::pyclass;
use tokio::sync::mpsc;

use crate::events::{Event, Events, Key};
use crate::messages::{Messages, Next};
use crate::reply::{late, maybe, stream, timeout_left, unanswered, Reply};
use crate::status::{self, Refusal};

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
pub struct Watch {
    pub events: Arc<Events>,
    pub key: Key,
    over: bool,
}

impl Watch {
    pub fn end(&mut self, event: Option<Event>) {
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
                    messages.ended().await;
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
pub fn tell(events: &Events, key: Key, next: Next) -> Result<(), Refusal> {
    match next {
        Next::Message(message) => events.push(Event::Message(key, message)),
        Next::End => events.push(Event::Ended(key)),
        Next::Gone => events.push(Event::Gone(key)),
        Next::Refused(refusal) => return Err(refusal),
    }
    Ok(())
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
