//! When to send a call again.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tonic::Code;

use crate::error::Error;
use crate::rpc::Method;

/// How often a call is sent at most that is refused, or that opens a stream.
const MAX_ATTEMPTS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Even with the jitter below a second: a server that is back is used within one.
const LONGEST_PAUSE: Duration = Duration::from_millis(800);
/// Clients that lost one server do not come back all at once.
const JITTER: f64 = 0.2;

/// Since when the service is away, as all unary calls of one connection see it: they wait for it together, not each anew.
#[derive(Default)]
pub(crate) struct Absence(Mutex<Seen>);

#[derive(Clone, Copy, Default)]
struct Seen {
    answered: Option<Instant>,
    /// When the first attempt found nobody. None: the service is there.
    since: Option<Instant>,
}

impl Absence {
    /// The service has answered something.
    pub(crate) fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Seen { answered: Some(Instant::now()), since: None };
    }

    /// An attempt that was sent then found nobody. What another call was answered meanwhile is the newer news.
    fn begin(&self, sent: Instant) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.since.is_none() && seen.answered.is_none_or(|answered| answered <= sent) {
            seen.since = Some(Instant::now());
        }
    }

    fn began(&self) -> Option<Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).since
    }
}

/// One call's attempts.
pub(crate) struct Attempts<'a> {
    method: &'a Method,
    retry_for: Duration,
    absence: &'a Absence,
    sent: Instant,
    /// When the first attempt found nobody.
    missed: Option<Instant>,
    absences: u32,
    refusals: u32,
}

impl<'a> Attempts<'a> {
    /// Those of a call that begins now. `retry_for`: how long a unary call answers UNAVAILABLE with another attempt, from
    /// the beginning of the absence that the connection knows.
    pub(crate) fn new(method: &'a Method, retry_for: Duration, absence: &'a Absence) -> Self {
        Self { method, retry_for, absence, sent: Instant::now(), missed: None, absences: 0, refusals: 0 }
    }

    /// An attempt was answered.
    pub(crate) fn answered(&self) {
        if self.method.is_unary {
            self.absence.end();
        }
    }

    /// How long to wait before the next attempt. None: it would not help.
    pub(crate) fn pause(&mut self, error: &Error) -> Option<Duration> {
        let pause = if error.code() == Code::Unavailable { self.while_away() } else { self.refused(error) };
        self.sent = Instant::now() + pause.unwrap_or_default();
        pause
    }

    fn while_away(&mut self) -> Option<Duration> {
        let usual = LONGEST_PAUSE.min(FIRST_PAUSE * 3_u32.pow(self.absences.min(MAX_ATTEMPTS)));
        let pause = usual.mul_f64(1.0 - JITTER + 2.0 * JITTER * fastrand::f64());
        self.absences += 1;
        if !self.method.is_unary {
            return (self.method.is_safe_twice && self.absences < MAX_ATTEMPTS).then_some(pause);
        }
        let now = Instant::now();
        self.absence.begin(self.sent);
        let missed = *self.missed.get_or_insert(now);
        // Where others are answered meanwhile, this call still does not ask for ever.
        let since = self.absence.began().map_or(missed, |began| began.min(missed));
        (self.method.is_safe_twice && now + pause - since < self.retry_for).then_some(pause)
    }

    fn refused(&mut self, error: &Error) -> Option<Duration> {
        // A deadline that passed or a broken connection has no reason, and is no answer.
        if !error.reason().is_empty() {
            self.answered();
        }
        let usual = FIRST_PAUSE * 2_u32.pow(self.refusals);
        self.refusals += 1;
        let may = error.may_be_sent_again() && self.method.is_unary && self.refusals < MAX_ATTEMPTS;
        may.then(|| error.retry_after().unwrap_or(usual))
    }
}
