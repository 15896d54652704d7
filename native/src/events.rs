//! What happens on the wire, told to the thread that runs Python's event loop.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;

use bytes::Bytes;

use crate::call::Call;

/// The key of a call, unique within a front.
pub type Key = u64;

pub enum Event {
    /// A call has begun; its first message, where it is there already.
    Begun(Box<Call>, Option<Bytes>),
    /// The message that was asked for.
    Message(Key, Bytes),
    /// There is no further message.
    Ended(Key),
    /// What was written is on its way: the next may be.
    Written(Key),
    /// The client went away, or its connection broke.
    Gone(Key),
    /// The deadline has passed; the client was told.
    Expired(Key),
    /// The client sent what cannot be taken; it was told.
    Refused(Key),
    /// Every connection has ended after a stop.
    Stopped,
}

/// Events in order. `push` is called where the wire is, `take` where Python is; neither waits for
/// the other, and a run of events wakes Python once.
pub struct Events {
    waiting: Mutex<VecDeque<Event>>,
    bell: UnixStream,
    ear: UnixStream,
}

impl Events {
    pub fn new() -> io::Result<Self> {
        let (bell, ear) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        ear.set_nonblocking(true)?;
        Ok(Self {
            waiting: Mutex::new(VecDeque::new()),
            bell,
            ear,
        })
    }

    pub fn push(&self, event: Event) {
        let first = {
            let mut waiting = self.waiting.lock().unwrap();
            waiting.push_back(event);
            waiting.len() == 1
        };
        if first {
            // A bell that is full is ringing already.
            let _ = (&self.bell).write(&[1]);
        }
    }

    pub fn take(&self) -> VecDeque<Event> {
        let mut rung = [0; 64];
        // Heard before they are taken: who comes in between rings again.
        while matches!((&self.ear).read(&mut rung), Ok(heard) if heard == rung.len()) {}
        std::mem::take(&mut *self.waiting.lock().unwrap())
    }

    /// Readable when there are events.
    pub fn fd(&self) -> i32 {
        self.ear.as_raw_fd()
    }
}
