//! When to send a call again.

use std::time::Duration;

use tokio::time::Instant;
use tonic::Code;

use crate::error::Error;
use crate::rpc::Method;

/// How often a call is sent at most that is refused, that opens a stream, or that asks for a service known to be away.
const MAX_ATTEMPTS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Clients that lost one server do not come back all at once.
const JITTER: f64 = 0.2;

/// One call's attempts.
pub(crate) struct Attempts<'a> {
    method: &'a Method,
    began: Instant,
    retry_for: Duration,
    /// Whether the next call need not ask for as long as this one did.
    pub(crate) known_away: bool,
    absences: u32,
    refusals: u32,
}

impl<'a> Attempts<'a> {
    /// Those of a call that begins now. `retry_for`: how long a unary call answers UNAVAILABLE with another attempt.
    /// `known_away`: an earlier call asked for that long in vain, so this one makes a few attempts only.
    pub(crate) fn new(method: &'a Method, retry_for: Duration, known_away: bool) -> Self {
        Self { method, began: Instant::now(), retry_for, known_away, absences: 0, refusals: 0 }
    }

    /// How long to wait before the next attempt. None: it would not help.
    pub(crate) fn pause(&mut self, error: &Error) -> Option<Duration> {
        if error.code() == Code::Unavailable {
            return if self.method.is_safe_twice { self.while_away() } else { None };
        }
        self.known_away = false;
        let usual = FIRST_PAUSE * 2_u32.pow(self.refusals);
        self.refusals += 1;
        let may = error.may_be_sent_again() && self.method.is_unary && self.refusals < MAX_ATTEMPTS;
        may.then(|| error.retry_after().unwrap_or(usual))
    }

    fn while_away(&mut self) -> Option<Duration> {
        let usual = LONGEST_PAUSE.min(FIRST_PAUSE * 3_u32.pow(self.absences.min(MAX_ATTEMPTS)));
        let pause = usual.mul_f64(1.0 - JITTER + 2.0 * JITTER * fastrand::f64());
        self.absences += 1;
        let few = self.known_away || !self.method.is_unary;
        let late = self.method.is_unary && self.began.elapsed() + pause >= self.retry_for;
        self.known_away |= late && !self.retry_for.is_zero();
        let enough = few && self.absences >= MAX_ATTEMPTS;
        (!late && !enough).then_some(pause)
    }
}
