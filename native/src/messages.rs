//! Messages of a call in gRPC's frames: a byte that says whether it is compressed, four of length.

use std::future::poll_fn;
use std::io::Read;
use std::pin::Pin;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body;
use hyper::body::Incoming;

use crate::status::{Code, Refusal};

const PREFIX: usize = 5;
/// How long, and how much of it, what comes after an answer goes by.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 256 * 1024;
/// How long a refusal waits for the rest of a request: clients mostly send it right behind the headers.
const ENDING: Duration = Duration::from_millis(20);

/// A message as it goes out.
pub fn framed(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(PREFIX + message.len());
    frame.put_u8(0);
    frame.put_u32(message.len() as u32);
    frame.put_slice(message);
    frame.freeze()
}

pub enum Next {
    Message(Bytes),
    End,
    /// The client went away in the middle.
    Gone,
    Refused(Refusal),
}

/// Reads the messages of a request one by one, and nothing that was not asked for: what the body
/// holds back, HTTP/2's flow control holds back at the client.
pub struct Messages {
    body: Incoming,
    read: BytesMut,
    encoding: Encoding,
    most: usize,
}

#[derive(Clone, Copy)]
enum Encoding {
    Identity,
    Gzip,
    Deflate,
    Unknown,
}

impl Messages {
    /// `most`: bytes of the largest message that is taken.
    pub fn new(body: Incoming, headers: &HeaderMap, most: usize) -> Self {
        let encoding = match headers.get("grpc-encoding").map(|name| name.as_bytes()) {
            None | Some(b"identity") => Encoding::Identity,
            Some(b"gzip") => Encoding::Gzip,
            Some(b"deflate") => Encoding::Deflate,
            Some(_) => Encoding::Unknown,
        };
        Self {
            body,
            read: BytesMut::new(),
            encoding,
            most,
        }
    }

    /// The next message. Nothing is lost where the future is dropped before it is ready.
    pub async fn next(&mut self) -> Next {
        loop {
            match self.parsed() {
                Ok(Some(message)) => return Next::Message(message),
                Ok(None) => {}
                Err(refusal) => return Next::Refused(refusal),
            }
            match poll_fn(|context| Pin::new(&mut self.body).poll_frame(context)).await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        if self.read.is_empty() {
                            self.read = BytesMut::from(data);
                        } else {
                            self.read.extend_from_slice(&data);
                        }
                    }
                }
                Some(Err(_)) => return Next::Gone,
                None if self.read.is_empty() => return Next::End,
                None => {
                    return Next::Refused(Refusal::new(
                        Code::Internal,
                        "the request ends in the middle of a message",
                    ))
                }
            }
        }
    }

    /// Waits a moment until the client has sent all of its request, before it is refused. A client on
    /// gRPC's core whose next message meets a call that is over says INTERNAL, and not what it was
    /// answered.
    pub async fn ended(&mut self) {
        let _ = tokio::time::timeout(ENDING, self.pass()).await;
    }

    /// Lets what still comes go by for a moment, once the call is answered: a stream that is reset
    /// in the middle of what its client sends may reach it before the answer does.
    pub fn linger(mut self) {
        if self.body.is_end_stream() {
            return;
        }
        tokio::spawn(tokio::time::timeout(LINGER, async move {
            self.pass().await;
        }));
    }

    async fn pass(&mut self) {
        let mut left = LINGER_BYTES;
        while !self.body.is_end_stream() && left > 0 {
            let next = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context));
            let Some(Ok(frame)) = next.await else { return };
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
        }
    }

    fn parsed(&mut self) -> Result<Option<Bytes>, Refusal> {
        if self.read.len() < PREFIX {
            return Ok(None);
        }
        let length = u32::from_be_bytes(self.read[1..PREFIX].try_into().unwrap()) as usize;
        if length > self.most {
            return Err(self.too_large(length));
        }
        if self.read.len() < PREFIX + length {
            self.read.reserve(PREFIX + length - self.read.len());
            return Ok(None);
        }
        let compressed = self.read[0];
        self.read.advance(PREFIX);
        let message = self.read.split_to(length).freeze();
        match compressed {
            0 => Ok(Some(message)),
            1 => self.unpacked(&message).map(Some),
            _ => Err(Refusal::new(
                Code::Internal,
                "the first byte of a message must be 0 or 1",
            )),
        }
    }

    fn unpacked(&self, message: &[u8]) -> Result<Bytes, Refusal> {
        let limit = self.most as u64 + 1;
        let mut whole = Vec::new();
        let done = match self.encoding {
            Encoding::Gzip => flate2::read::MultiGzDecoder::new(message)
                .take(limit)
                .read_to_end(&mut whole),
            Encoding::Deflate => flate2::read::ZlibDecoder::new(message)
                .take(limit)
                .read_to_end(&mut whole),
            Encoding::Identity => {
                return Err(Refusal::new(
                    Code::Internal,
                    "a message is compressed and grpc-encoding does not say how",
                ))
            }
            Encoding::Unknown => {
                return Err(Refusal::new(
                    Code::Unimplemented,
                    "this grpc-encoding is not known here: send identity, gzip or deflate",
                ))
            }
        };
        if done.is_err() {
            return Err(Refusal::new(
                Code::Internal,
                "a message cannot be decompressed",
            ));
        }
        if whole.len() > self.most {
            return Err(self.too_large(whole.len()));
        }
        Ok(whole.into())
    }

    fn too_large(&self, length: usize) -> Refusal {
        Refusal::new(
            Code::ResourceExhausted,
            &format!(
                "a message of {length} bytes is larger than the {} that this server reads",
                self.most
            ),
        )
    }
}
