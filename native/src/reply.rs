//! The reply of a call: its body, and the two tasks that go on with a stream.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, Sleep};

use crate::call::{tell, Command, Watch};
use crate::events::Event;
use crate::messages::{Messages, Next};
use crate::status::{self, Code};

/// The body of a reply.
pub enum Reply {
    Whole(Option<Bytes>, Option<HeaderMap>),
    Parts(mpsc::Receiver<Frame<Bytes>>),
}

impl Reply {
    pub fn whole(message: Bytes) -> Self {
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

/// The reply of a call whose headers are sent: two tasks go on with it, and end with it.
pub fn stream(
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

pub fn late() -> HeaderMap {
    status::trailers(Code::DeadlineExceeded as i32, "Deadline Exceeded")
}

pub fn unanswered() -> HeaderMap {
    status::trailers(
        Code::Internal as i32,
        "the call was dropped without a status",
    )
}

/// Waits so long; without a time for good.
pub struct Deadline(Option<Pin<Box<Sleep>>>);

pub fn maybe(timeout: Option<Duration>) -> Deadline {
    Deadline(timeout.map(|timeout| Box::pin(sleep(timeout))))
}

pub fn timeout_left(deadline: &Deadline) -> Option<Duration> {
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
